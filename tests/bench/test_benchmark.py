"""The benchmark without measurements: figures from counts, reports from figures, comparison of two result files."""
import contextlib
import copy
import io
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import xml.dom.minidom

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench'))
sys.dont_write_bytecode = True

from benchmark import blocks, charts, cli, clients, cold_cache, compare, conclusion, figures, guest, load_generator, machine, model  # noqa: E402
from benchmark import openssl_handshake, profile, ratio_figure, report, rounds, scenarios, server_configuration, sizes  # noqa: E402

PLAIN = model.Setup('sluice', 'plain')
USER = model.Setup('sluice', 'user')


def reading(cpu, responses=1000):
    return {'seconds': 1.0, 'elapsed': 1.0, 'responses': responses, 'responses_all': responses, 'bytes': responses * 1000,
            'bytes_all': responses * 1000, 'cpu': cpu, 'user': cpu / 2, 'system': cpu / 2, 'switches': 10, 'client_cpu': 0.5,
            'memory': 3000, 'latency': [[1000, responses - 1], [2000, 1]], 'handshakes': 0, 'resumed': 0,
            'baseline': [[150000, responses]], 'upgrade_gap': 0.150}


def outcome(setup, *cpu, load=model.Load('1k')):
    return model.Outcome(load, setup, [reading(one) for one in cpu])


def results_of(*outcomes, **machine):
    facts = {'processor': 'P|1', 'cpus': 2, 'memory_mib': 1, 'kernel': 'k', 'ktls': True, 'server_cpu': 0, 'client_cpu': 1,
             'others': 0.05, 'steal': 0.0, 'certificate': 'c', 'suite': 's', 'versions': {'sluice': '1'}, 'emulated': False, **machine}
    return {'format': 2, 'made': 'now', 'command': 'bench/run', 'machine': facts,
            'options': {'rounds': 3, 'seconds': 1, 'warm': 0.2, 'loop': 'auto'},
            'scenarios': [{'name': 'quick', 'title': 'T', 'outcomes': [one.to_json() for one in outcomes]}]}


class Profiles(unittest.TestCase):
    def test_shared_objects_are_classified(self):
        text = '    40.00%;[kernel.kallsyms]\n  20.00;libcrypto.so.3\n 10.00%;libssl.so.3\n  5.00%;libc.so.6\n 3.00%;ld-linux-x86-64.so.2\n' \
               ' 12.00%;nginx\n  5.00%;libpcre2-8.so.0\n  5.00%;[vdso]\n'
        found = profile.shares(text)
        self.assertEqual({name: round(share, 2) for name, share in found.items()},
                         {'kernel': 0.45, 'crypto': 0.2, 'ssl': 0.1, 'c_library': 0.08, 'own': 0.17})

    def test_empty_sample_is_no_profile(self):
        for text in ('', '# no samples\n', 'Error: something\n', '  0.00%;sluice\n'):
            self.assertIsNone(profile.shares(text), text)


class Sizes(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([sizes.bytes_of(name) for name in ('7', '1k', '100k', '16m', '1g')],
                         [7, 1024, 102400, 16 << 20, 1 << 30])

    def test_invalid_sizes(self):
        for name in ('', 'k', '1t', '-1k', '1kk', '1.5k'):
            with self.assertRaises((ValueError, KeyError), msg=name):
                sizes.bytes_of(name)


class Figures(unittest.TestCase):
    def test_quantiles(self):
        histogram = [[10, 90], [20, 9], [30, 1]]
        self.assertEqual([figures.quantile(histogram, share) for share in (0.5, 0.9, 0.99, 0.999, 1)], [10, 10, 20, 30, 30])
        self.assertIsNone(figures.quantile([], 0.5))

    def test_latency_with_readers_is_compared_with_latency_alone(self):
        loaded = {'latency': [[5000, 99], [9000, 1]], 'baseline': [[1000, 99], [2000, 1]], 'disk_wait': 0.25, 'readers_rate': 5e6}
        self.assertEqual([figures.FIGURES[name][2](loaded) for name in ('p99', 'baseline_p99', 'readers_ratio', 'latency_max', 'disk_wait', 'readers_rate')],
                         [5.0, 1.0, 5.0, 9.0, 25.0, 5.0])

    def test_merging_keeps_every_count(self):
        self.assertEqual(figures.merged([[[1, 2], [5, 1]], [[1, 1], [3, 4]]]), [[1, 3], [3, 4], [5, 1]])

    def test_summary(self):
        found = figures.summary([reading(0.1), reading(0.2), reading(0.3)], 'cpu_request')
        self.assertAlmostEqual(found['median'], 200)
        self.assertAlmostEqual(found['spread'], 1.0)
        self.assertTrue(found['noisy'])
        self.assertFalse(figures.summary([reading(0.1), reading(0.101)], 'cpu_request')['noisy'])
        self.assertIsNone(figures.summary([], 'cpu_request'))
        self.assertIsNone(figures.summary([{'memory': 1}], 'cpu_request'))

    def test_one_outlier_does_not_make_a_figure_noisy(self):
        self.assertFalse(figures.summary([reading(cpu) for cpu in (0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.9)],
                                         'cpu_request')['noisy'])

    def test_ratios_pair_adjacent_rounds(self):
        ours, theirs = [reading(0.1), reading(0.4), reading(0.2)], [reading(0.2), reading(0.8), reading(0.1)]
        self.assertAlmostEqual(figures.paired_ratio(ours, theirs, 'cpu_request'), 0.5)
        self.assertIsNone(figures.paired_ratio(ours, [], 'cpu_request'))

    def test_responses_longer_than_a_round_are_measured(self):
        self.assertAlmostEqual(figures.FIGURES['response_time'][2]({'connections': 30, 'seconds': 2, 'responses': 4.5}), 13333.333, places=2)

    def test_missing_counts_have_no_figures(self):
        for name in figures.FIGURES:
            self.assertIsNone(figures.FIGURES[name][2]({}), name)

    def test_numbers_are_formatted(self):
        self.assertEqual([figures.number(value) for value in (None, 0.1234, 1.234, 12.34, 123.4, 12345.6)],
                         ['-', '0.123', '1.23', '12.3', '123', '12,346'])
        self.assertIn('(!)', figures.formatted(figures.summary([reading(0.1), reading(0.3)], 'cpu_request')))


class Model(unittest.TestCase):
    def test_results_round_trip_through_json(self):
        elements = model.Outcome(model.Load('1m', 8), model.Setup('sluice', 'user', overrides=(('sendfile', 'off'),)), [reading(1)])
        self.assertEqual(model.Outcome.from_json(elements.to_json()), elements)

    def test_results_without_roles_are_read(self):
        tree = model.Outcome(model.Load('1m'), model.Setup('sluice')).to_json()
        del tree['setup']['role']
        self.assertEqual(model.Outcome.from_json(tree).setup.role, 'files')

    def test_unsupported_setups_have_a_reason(self):
        self.assertTrue(server_configuration.unsupported_reason(model.Setup('h2o', 'ktls'), model.Load('1k'), True))
        self.assertTrue(server_configuration.unsupported_reason(model.Setup('nginx', 'ktls'), model.Load('1k'), False))
        self.assertTrue(server_configuration.unsupported_reason(model.Setup('haproxy', 'user'), model.Load('1m'), True))
        self.assertEqual(server_configuration.unsupported_reason(model.Setup('nginx', 'ktls'), model.Load('1k'), True), '')

    def test_every_configuration_has_port_and_folder(self):
        for server, configuration in server_configuration.CONFIGURATIONS.items():
            for transport in ('plain', 'user', 'ktls'):
                text, arguments = configuration(model.Setup(server, transport), '/FOLDER', 24321)
                text = ' '.join([text, *arguments])
                self.assertIn('24321', text)
                self.assertTrue('/FOLDER' in text or server == 'haproxy' and transport == 'plain')
                self.assertTrue(arguments)

    def test_every_proxy_configuration_has_its_upstream(self):
        for role, supported in server_configuration.ROLES.items():
            for server in server_configuration.CONFIGURATIONS:
                setup = model.Setup(server, 'plain', role=role)
                self.assertEqual(server not in supported, bool(server_configuration.unsupported_reason(setup, model.Load('1m'), True)), setup)
                if server in supported:
                    text, _ = server_configuration.CONFIGURATIONS[server](setup, '/FOLDER', 24321, origin=24999)
                    self.assertIn('127.0.0.1:24999', text)
                    self.assertIn('24321', text)
                    self.assertNotIn('/FOLDER/www', text)

    def test_overrides_are_in_the_configuration(self):
        for server, role in (('sluice', 'files'), ('sluice', 'tcp'), ('haproxy', 'tcp')):
            text, _ = server_configuration.CONFIGURATIONS[server](model.Setup(server, 'plain', overrides=(('directive', 'value'),), role=role), '/F', 1, origin=2)
            self.assertRegex(text, 'directive:? value')


class Arguments(unittest.TestCase):
    def test_only_keep_alive_loads_poll(self):
        def busy(*arguments, **more):
            return '-b' in load_generator.arguments_of(model.Load('1k', *arguments, **more), USER, 1, busy=True)
        self.assertTrue(busy())
        self.assertFalse(busy(slow=1000) or busy(64, 'full') or busy(64, 'idle'))
        self.assertNotIn('-b', load_generator.arguments_of(model.Load('1k'), USER, 1))

    def test_other_clients_get_address_connections_and_duration(self):
        for client in clients.CLIENTS:
            arguments = clients.arguments_of(model.Load('1k', 7, client=client), USER, 0.2, 24321)
            self.assertIn('24321', ' '.join(arguments))
            self.assertEqual(arguments[arguments.index('-c') + 1], '7')
            self.assertIn('1', arguments)
        self.assertIn('http://127.0.0.1:1/1k', clients.arguments_of(model.Load('1k', client='wrk'), PLAIN, 1, 1))

    def test_output_of_other_clients_is_parsed(self):
        for client, output, responses in (('wrk', '  31752 requests in 2.00s, 39MB read', '31752'),
                                      ('h2load', 'requests: 9 total, 9 started, 8 done, 7 succeeded, 0 failed', '7'),
                                      ('blast --verify', '{"responses": 5.1, "responses_all": 6.000, "bytes_all": 7}', '6')):
            self.assertEqual(clients.CLIENTS[client][1].search(output).group(1), responses)
            self.assertIsNone(clients.CLIENTS[client][1].search('connect: refused'))

    def test_only_http2_counts_as_http2(self):
        pattern = clients.CLIENTS['h2load h2'][1]
        output = 'Application protocol: {}\nfinished\nrequests: 90 total, 91 started, 90 done, 42 succeeded, 48 failed\n'
        self.assertEqual(pattern.search(output.format('h2')).group(1), '42')
        self.assertIsNone(pattern.search(output.format('http/1.1')))
        load = model.Load('1m', 10, streams=4, client='h2load h2')
        self.assertEqual(clients.arguments_of(load, USER, 2, 443)[1:], '-t 1 -c 10 -m 4 -D 2 https://127.0.0.1:443/1m'.split())
        self.assertIn('4 streams each', load.label)

    def test_http2_targets_are_reported(self):
        http2 = scenarios.module_of('http2')
        groups = {load: [outcome(model.Setup('sluice'), 0.1, 0.2, load=load), outcome(model.Setup('nginx'), 0.4, 0.8, load=load)]
                  for load in (http2.SMALL, http2.LARGE)}
        sentences = list(http2.target_sentences(groups))
        self.assertEqual(len(sentences), 2)          # h2o, nghttpd and idle connections were not measured
        for sentence, size in zip(sentences, ('1k', '1m')):
            self.assertRegex(sentence, f'^{size}: .* / nginx: 0.25')

    def test_handshake_counts_come_from_clients_that_report_them(self):
        agreement = scenarios.module_of('agreement')
        for client, left in (('blast', 100), ('wrk', 100 - 64 * 500 / 1000)):
            found = agreement.without_handshakes(outcome(USER, 0.1, load=model.Load('1k', client=client)), 500)
            self.assertAlmostEqual(found['median'], left, msg=client)


class Machine(unittest.TestCase):
    def test_lists_of_cpus(self):
        self.assertEqual([cpu for cpu in range(12) if machine.is_listed(cpu, '0-2,5,8-9\n')], [0, 1, 2, 5, 8, 9])
        self.assertFalse(machine.are_siblings(0, 0))

    def test_cpu_of_other_processes_is_not_negative(self):
        averages = machine.BackgroundLoad().averages()
        self.assertGreaterEqual(averages['others'], 0)
        self.assertIn('steal', averages)

    def runs(self, *ticks):
        """Runs repeat_without_steal() with these values of the counter; returns the number of runs and the steal_ticks of the last one."""
        count = []
        with unittest.mock.patch('benchmark.counters.steal_ticks', side_effect=ticks):
            found = cold_cache.repeat_without_steal(lambda: count.append(1) or {'latency': []})
        return len(count), found['steal_ticks']

    def test_runs_with_steal_time_are_repeated(self):
        self.assertEqual(self.runs(5, 5), (1, 0))
        self.assertEqual(self.runs(5, 9, 9, 9), (2, 0))
        self.assertEqual(self.runs(*range(2 * cold_cache.ATTEMPTS_MAX)), (cold_cache.ATTEMPTS_MAX, 1))


class Rounds(unittest.TestCase):
    def test_timeout_of_a_client_is_a_failure(self):
        def hang():
            raise subprocess.TimeoutExpired(['h2load', '-D', '1'], 64)
        found = outcome(USER)
        self.assertIsNone(rounds.attempt(found, hang))
        self.assertIn('timed out after 64 seconds', found.failure)


class Plans(unittest.TestCase):
    def options(self, **more):
        return types.SimpleNamespace(**{'peers': [], 'loop': 'auto', 'emulated': False, 'sizes': [], **more})

    def test_only_the_selected_transports_are_measured(self):
        groups = scenarios.module_of('comparison').plan(self.options())
        for transports, left in (([], {'user', 'ktls'}), (['user'], {'user'}), (['plain'], set())):
            self.assertEqual({setup.transport for group in rounds.with_transports(groups, transports) for setup in group.setups}, left)
        self.assertEqual({setup.transport for group in groups for setup in group.setups}, {'user', 'ktls'})

    def test_comparison_takes_sizes_peers_and_loop(self):
        groups = scenarios.module_of('comparison').plan(self.options(sizes=['4k', '1g'], peers=['lighttpd'], loop='epoll'))
        self.assertEqual([(group.load.size, group.load.connections) for group in groups[:2]], [('4k', 64), ('1g', 8)])
        self.assertEqual({(setup.server, setup.loop) for group in groups for setup in group.setups}, {('lighttpd', ''), ('sluice', 'epoll')})

    def test_page_scenarios_exist(self):
        self.assertLessEqual({*scenarios.PAGE, *scenarios.PAGE_EMULATED}, set(scenarios.NAMES))


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
        self.assertEqual([elements[1].ratios['second'], elements[1].categories], [[0.5, 1.0], ['1k, 64 connections, sluice plain', '1k, 64 connections, sluice TLS user']])
        chart_paths = charts.draw(elements[1], compare.footer(first, second))
        for arguments in ('CPU microseconds per response (lower is better)', 'ratio / first, lower is better', 'Second:'):
            self.assertIn(arguments, chart_paths)

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
