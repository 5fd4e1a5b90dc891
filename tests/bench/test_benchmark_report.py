"""The reports of the benchmark from figures, without measurements, and the comparison of two result files."""
import contextlib
import copy
import dataclasses
import io
import os
import re
import tempfile
import types
import unittest
import unittest.mock
import xml.dom.minidom

from fixture import PLAIN, USER, outcome, reading, results_of
from benchmark import blocks, charts, cli, compare, conclusion, figures, guest, model, openssl_handshake, ratio_figure, report
from benchmark import scenarios, server_configuration, sizes


class Report(unittest.TestCase):
    def test_both_formats_have_the_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            report.write(results_of(outcome(PLAIN, 0.1, 0.1), outcome(USER, 0.2, 0.2)), folder)
            with open(f'{folder}/report.md', encoding='utf-8') as stream:
                text = stream.read()
            with open(f'{folder}/report.html', encoding='utf-8') as stream:
                page = stream.read()
        self.assertIn('2.00 times the CPU of plain HTTP', text)
        self.assertIn('| sluice plain |', text)
        self.assertIn('P\\|1', text)
        self.assertIn('2.00 times the CPU of plain HTTP', page)
        self.assertNotRegex(page, r'src="|href="|url\(http')      # the page is self-contained

    def test_missing_measurements_have_a_reason(self):
        failure = [model.Outcome(model.Load('1k'), model.Setup(server, 'ktls'), failure=reason)
                   for server, reason in (('sluice', '<no kernel TLS>'), ('nginx', '<no kernel TLS>'), ('h2o', 'no configuration'))]
        sections = report.sections_of(results_of(outcome(PLAIN, 0.1), outcome(USER, 0.1), *failure, ktls=False))
        line = 'not measured: sluice TLS ktls, nginx TLS ktls (<no kernel TLS>); h2o TLS ktls (no configuration)'
        self.assertEqual([text for text in report.markdown(sections, {}).split('\n') if 'not measured:' in text], [line])
        self.assertIn('sluice TLS ktls, nginx TLS ktls (&lt;no kernel TLS&gt;)', report.page(sections, {}))

    def test_emulation_and_noise_are_reported_at_the_top(self):
        self.assertIn('emulated processor', report.markdown(report.sections_of(results_of(emulated=True)), {}))
        self.assertIn('was not quiet', report.markdown(report.sections_of(results_of(others=0.3)), {}))
        self.assertIn('was not quiet', report.markdown(report.sections_of(results_of(others=0.05, steal=0.1)), {}))
        self.assertNotIn('was not quiet', report.markdown(report.sections_of(results_of()), {}))

    def test_emulator_is_found(self):
        self.assertTrue(callable(guest.vm_runner().boot))

    def test_saturated_client_is_reported(self):
        slow = outcome(PLAIN, 0.2)
        slow.readings[0]['client_cpu'] = 0.99
        self.assertEqual(len(blocks.saturated_clients([slow])), 1)
        self.assertEqual(blocks.saturated_clients([outcome(PLAIN, 0.2)]), [])

    def test_scenarios_accept_empty_results(self):
        for name in scenarios.NAMES:
            self.assertIsInstance(scenarios.module_of(name).report_elements([], results_of()), list, name)

    def test_every_scenario_reports_its_planned_figures(self):
        for name in scenarios.NAMES:
            for emulated in (False, True):
                options = types.SimpleNamespace(peers=['nginx', 'h2o'], loop='auto', emulated=emulated, sizes=[])
                groups = scenarios.module_of(name).plan(options)
                found = [outcome(setup, 0.1, 0.2, load=group.load) for group in groups for setup in group.setups]
                self.assertTrue(found, name)
                self.assertTrue(all(sizes.bytes_of(one.load.size) > 0 for one in found), name)
                elements = scenarios.module_of(name).report_elements(found, results_of(emulated=emulated))
                shown = report.markdown([(name, elements)], {})
                self.assertNotIn('not measured', shown)
                self.assertIn('150', shown, name)        # the median in microseconds is in the report


class Charts(unittest.TestCase):
    def results(self):
        nginx, h2o = (model.Setup(server, 'user') for server in ('nginx', 'h2o'))
        results = results_of(outcome(model.Setup('sluice', 'user', 'epoll'), 0.10, 0.12), outcome(nginx, 0.2, 0.2), outcome(h2o, 0.15, 0.15),
                             versions={'sluice': '1', 'nginx': 'nginx/1.22.1'})
        results['scenarios'][0]['name'] = 'comparison'
        return results

    def chart(self):
        return next(block for _, elements in report.sections_of(self.results()) for block in elements if isinstance(block, blocks.Bars))

    def test_axes_have_quantity_unit_and_direction(self):
        chart_paths = charts.draw(self.chart(), report.footer(self.results()))
        for arguments in ('CPU seconds per GB sent (lower is better)', 'ratio / nginx, lower is better', 'nginx 1.22.1', 'lowest to highest round',
                      'prefers-color-scheme:dark', 'sluice epoll TLS user', 'Linux k', '0.55'):
            self.assertIn(arguments, chart_paths)
        xml.dom.minidom.parseString(chart_paths)

    def test_chart_without_nginx_has_one_panel(self):
        bars = blocks.bars_of('x', 'T', 'cpu_gb', blocks.by_load([outcome(PLAIN, 0.1)]))
        self.assertEqual([panel is not None for panel in charts.panels_of(bars)], [True, False])
        self.assertNotIn('ratio', charts.draw(bars))

    def test_text_is_escaped_and_missing_bars_are_omitted(self):
        bars = blocks.Bars('x', '<T>', 'a & b', ['1k', '1m'], {'s<': [figures.summary([reading(0.1)], 'cpu_gb'), None]})
        chart_paths = charts.draw(bars)
        self.assertIn('&lt;T&gt;', chart_paths)
        self.assertEqual(chart_paths.count('s&lt;'), 1)
        xml.dom.minidom.parseString(chart_paths)

    def test_ticks_are_round(self):
        self.assertEqual([charts.ticks(most) for most in (0, 1, 9.5, 1000)],
                         [[0], [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0], [0, 2, 4, 6, 8], [0, 200, 400, 600, 800, 1000]])

    def test_page_begins_with_conclusion_and_chart(self):
        heading, elements = report.sections_of(self.results())[0]
        self.assertEqual(heading, '')
        self.assertIn('divided by that of nginx: 1k, 64 connections: 0.550 (epoll TLS user)', elements[0].text)
        self.assertIn('divided by that of h2o', elements[0].text)
        self.assertIsInstance(elements[1], blocks.Bars)
        with tempfile.TemporaryDirectory() as folder:
            report.write(self.results(), folder)
            with open(f'{folder}/report.html', encoding='utf-8') as stream:
                page = stream.read()
        self.assertLess(page.index('Conclusion'), page.index('<svg'))
        self.assertLess(page.index('<svg'), page.index('<table'))

    def test_targets_met_are_in_the_conclusion(self):
        targets = scenarios.module_of('targets')
        results = results_of(outcome(model.Setup('sluice', 'user', 'epoll'), 0.1, load=targets.SMALL), outcome(model.Setup('nginx', 'user'), 0.2, load=targets.SMALL))
        results['scenarios'][0]['name'] = 'targets'
        self.assertIn('Targets met: 1 of 1 with epoll.', conclusion.conclusion(results))
        self.assertIn('Nothing was measured', conclusion.conclusion(results_of()))


class Page(unittest.TestCase):
    def test_text_between_markers_is_replaced(self):
        page = f'before\n{report.BEGIN[False]}\nold\n{report.END}\nbetween\n{report.BEGIN[True]}\nvirtual\n{report.END}\nafter\n'
        for emulated, replaced, unchanged in ((False, 'old', 'virtual'), (True, 'virtual', 'old')):
            elements = report.replace_section(page, 'new', emulated)
            self.assertTrue(elements.startswith('before\n') and '\nbetween\n' in elements and elements.endswith('after\n'))
            self.assertTrue('\nnew\n' in elements and unchanged in elements and replaced not in elements)
            self.assertEqual(report.replace_section(elements, 'new', emulated), elements)
            with self.assertRaises(ValueError):
                report.replace_section('no markers', 'new', emulated)

    def test_page_has_its_markers(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench/README.md'), encoding='utf-8') as stream:
            page = stream.read()
        for emulated in (False, True):
            self.assertIn('\nnew\n', report.replace_section(page, 'new', emulated))

    def test_figure_equals_the_table_of_the_page(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench')
        with open(os.path.join(folder, 'README.md'), encoding='utf-8') as stream:
            page = stream.read()
        with open(os.path.join(folder, ratio_figure.NAME), encoding='utf-8') as stream:
            self.assertEqual(stream.read(), ratio_figure.draw(page), 'run bench/run --figure')
        changed = re.sub(r'^(\| 1 MiB \|) [\d.]+', r'\1 0.11', page, flags=re.M)
        self.assertIn('0.11</text>', ratio_figure.draw(changed))

    def test_readme_section_has_the_conclusion(self):
        text = report.readme_section(results_of(outcome(PLAIN, 0.1), outcome(USER, 0.3), processor='P', emulated=True,
                                        versions={'OpenSSL': 'OpenSSL 3'}))
        self.assertIn('3.00 times the CPU of plain HTTP', text)
        self.assertIn('emulated processor', text)
        self.assertNotIn('# The cost of TLS on this machine', text)

    def test_command_in_readme_has_no_paths(self):
        self.assertEqual(report.portable_command('bench/run --sluice /x/sluice --vm --rounds 3 --port 24000 --out /tmp/y'), 'bench/run --vm --rounds 3')


class Threshold(unittest.TestCase):
    def rows(self, *ratios):
        return {size: (None, None, ratio) for size, ratio in zip(('1k', '16k', '64k', '1m'), ratios)}

    def test_break_even_point(self):
        threshold = scenarios.module_of('threshold')
        self.assertEqual(threshold.break_even(self.rows(1.4, 1.1, 0.9, 0.7)), '64k')
        self.assertEqual(threshold.break_even(self.rows(1.4, 0.9, 1.1, 0.7)), '1m')
        self.assertIsNone(threshold.break_even(self.rows(1.4, 0.9, 0.9, 1.1)))
        self.assertIsNone(threshold.break_even(self.rows(None, None, None, None)))


class Targets(unittest.TestCase):
    def test_targets_are_compared(self):
        format_target = scenarios.module_of('targets').format_target
        self.assertEqual([format_target(0.7, 0.7, True), format_target(0.71, 0.7, True), format_target(1.0, 1.2, False), format_target(None, 1, True)],
                         ['0.700 pass', '0.710 **MISS**', '1.00 **MISS**', '-'])

    def test_noisy_figures_are_marked(self):
        targets = scenarios.module_of('targets')
        target = targets.TARGETS[0]
        for ours, marked in (((0.10, 0.10), False), ((0.10, 0.30), True)):
            found = [outcome(model.Setup('sluice', 'user', 'epoll'), *ours, load=targets.SMALL),
                     outcome(model.Setup('nginx', 'user'), 0.2, 0.2, load=targets.SMALL)]
            self.assertEqual('(!)' in targets.evaluate_target(found, 'epoll', target), marked)

    def test_files_and_proxied_responses_are_compared_separately(self):
        targets = scenarios.module_of('targets')
        found = [outcome(model.Setup(server, 'user', loop, role=role), cpu, cpu, load=targets.SMALL)
                 for server, loop, role, cpu in (('sluice', 'epoll', 'files', 0.1), ('nginx', '', 'files', 0.2), ('sluice', 'epoll', 'proxy', 0.4), ('nginx', '', 'proxy', 0.5))]
        rows = {target[0]: targets.evaluate_target(found, 'epoll', target) for target in targets.TARGETS}
        self.assertEqual([rows['HTTPS 1 KiB, CPU / nginx'], rows['proxied 1 KiB, CPU / nginx']], ['0.500 pass', '0.800 **MISS**'])

    def test_missing_figures_meet_no_target(self):
        targets = scenarios.module_of('targets')
        table = targets.report_elements([], results_of())[0]
        self.assertTrue(all(row[2:] == ['-', '-'] for row in table.rows))


class Handshakes(unittest.TestCase):
    def rows(self, ours, alone=(0.1, 0.1), keepalive=(0.02, 0.02)):
        """The rows of the table: user time is half of the CPU time."""
        scenario, sluice = scenarios.module_of('handshake'), model.Setup('sluice', 'user', 'epoll')
        found = [outcome(sluice, *keepalive, load=scenario.KEEPALIVE), outcome(model.Setup(model.OPENSSL), *alone, load=scenario.LOADS['full']),
                 outcome(sluice, *ours, load=scenario.LOADS['full'])]
        return scenario.report_elements(found, results_of())[1].rows

    def test_handshake_ratio_excludes_the_response(self):
        self.assertEqual([row[-1] for row in self.rows((0.122, 0.122))], ['', '1.02 pass'])
        self.assertEqual(self.rows((0.129, 0.129))[1][-1], '1.09 pass')
        self.assertEqual(self.rows((0.14, 0.14))[1][-1], '1.20 **MISS**')

    def test_missing_figures_have_no_ratio(self):
        self.assertEqual(self.rows((0.12, 0.12), alone=())[1][-1], '-')
        self.assertEqual(self.rows((0.12, 0.12), keepalive=())[1][-1], '-')

    def test_noisy_figures_are_marked(self):
        self.assertIn('(!)', self.rows((0.11, 0.16))[1][-1])

    def test_library_setup_runs_handshakes_only(self):
        for kind in model.KINDS:
            self.assertEqual(bool(server_configuration.unsupported_reason(model.Setup(model.OPENSSL), model.Load('1k', kind=kind), True)), kind not in model.HANDSHAKES, kind)

    def test_handshake_program_is_in_the_build_directory(self):
        self.assertEqual(openssl_handshake.arguments_of(model.Load('1k', 32, 'resumed'), 0.001), ['handshake', 'resumed', '50'])
        with self.assertRaises(OSError), unittest.mock.patch('subprocess.run', side_effect=OSError) as ran:
            openssl_handshake.read('/x/blast', model.Load('1k', 32, 'full'), 1)
        self.assertIn('/x/handshake', ran.call_args[0][0])


class Compare(unittest.TestCase):
    def changes(self, first, second):
        rows = compare.rows_of(results_of(outcome(PLAIN, *first)), results_of(outcome(PLAIN, *second)))
        return [row[-1] for row in rows if row[1] == 'CPU microseconds per response']

    def test_changes_within_the_spread_are_ignored(self):
        self.assertEqual(self.changes((0.10, 0.12), (0.05, 0.06)), ['better'])
        self.assertEqual(self.changes((0.10, 0.12), (0.15, 0.16)), ['worse'])
        self.assertEqual(self.changes((0.10, 0.12), (0.11, 0.16)), ['same'])

    def test_report_begins_with_conclusion_and_chart(self):
        first, second = results_of(outcome(PLAIN, 0.10, 0.12), outcome(USER, 0.2)), results_of(outcome(PLAIN, 0.05, 0.06), outcome(USER, 0.2))
        elements = compare.sections_of(first, second)[0][1]
        self.assertIn('are better in the second run, 0 are worse', elements[0].text)
        self.assertIn('median 0.750, from 0.500 to 1.00', elements[0].text)
        self.assertEqual([elements[1].ratios['second'], elements[1].categories], [[0.5, 1.0], ['quick / 1k, 64 connections / sluice plain', 'quick / 1k, 64 connections / sluice TLS user']])
        chart_paths = charts.draw(elements[1], compare.footer(first, second))
        for arguments in ('CPU seconds per GB sent (lower is better)', 'ratio / first, lower is better', 'Second:'):
            self.assertIn(arguments, chart_paths)

    def test_chart_omits_handshakes(self):
        """Their CPU time per GB is a hundred times that of large files, whose bars would disappear."""
        handshakes = dataclasses.replace(outcome(PLAIN, 0.2), load=model.Load('1k', 32, 'full'))
        results = results_of(outcome(PLAIN, 0.1), handshakes)
        self.assertEqual(compare.bars(results, results).categories, ['quick / 1k, 64 connections / sluice plain'])

    def test_files_without_a_common_figure(self):
        elements = compare.sections_of(results_of(outcome(PLAIN, 0.1)), results_of(outcome(USER, 0.1)))[0][1]
        self.assertIn('no figure in common', elements[0].text)
        self.assertFalse([block for block in elements if isinstance(block, blocks.Bars)])

    def test_files_are_written_only_on_request(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as shown:
            cli.compare_write(results_of(outcome(PLAIN, 0.1)), results_of(outcome(PLAIN, 0.2)), None)
            self.assertEqual(os.listdir(folder), [])
            cli.compare_write(results_of(outcome(PLAIN, 0.1)), results_of(outcome(PLAIN, 0.2)), folder)
            self.assertEqual(sorted(os.listdir(folder)), ['compare-cpu.svg', 'report.html', 'report.md'])
        self.assertIn('are worse', shown.getvalue())

    def test_scenarios_of_one_file_only_are_omitted(self):
        first = results_of(outcome(PLAIN, 0.1))
        second = copy.deepcopy(first)
        second['scenarios'][0]['outcomes'][0]['readings'] = []
        self.assertEqual(compare.rows_of(first, second), [])


if __name__ == '__main__':
    unittest.main()
