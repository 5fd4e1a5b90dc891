"""The benchmark without measurements: figures from counts, arguments and plans."""
import multiprocessing
import os
import subprocess
import tempfile
import types
import unittest
import unittest.mock

from fixture import PLAIN, USER, outcome, reading
from benchmark import clients, cold_cache, figures, load_generator, machine, model, profile, rounds, scenarios
from benchmark import server_configuration, servers, sizes


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


class DiskWaits(unittest.TestCase):
    def server(self, pid):
        return types.SimpleNamespace(setup=PLAIN, pids=lambda: [pid])

    def sampled_share(self, *texts):
        """The share from three samples of files with these texts, and of a missing one."""
        pipe = unittest.mock.Mock(**{'poll.side_effect': [False, False, False, True]})
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch('os.sched_setscheduler'):
            paths = [os.path.join(folder, str(number)) for number in range(len(texts) + 1)]
            for path, text in zip(paths, texts):
                with open(path, 'w', encoding='ascii') as stream:
                    stream.write(text)
            cold_cache.sample_disk_waits(paths, pipe)
        return pipe.send.call_args.args[0]

    def test_share_is_that_of_samples_with_a_waiting_thread(self):
        self.assertEqual(self.sampled_share('1 (x) D 0'), 1)
        self.assertEqual(self.sampled_share('1 (x) S 0', '2 (y) D) D 0'), 1)
        self.assertEqual(self.sampled_share('1 (x) S 0', '2 (y) D) R 0'), 0)
        self.assertEqual(self.sampled_share(), 0)

    def test_sampler_sends_its_share(self):
        with cold_cache.disk_wait_share(self.server(os.getpid())) as found:
            pass
        self.assertEqual(found['share'], 0)

    def test_sampler_that_ends_before_it_reads_is_an_error(self):
        pipe, other_end = multiprocessing.Pipe()
        pipe.send('stop')
        other_end.close()
        with self.assertRaisesRegex(servers.BenchmarkError, 'ended early'):
            cold_cache.received(pipe)

    def test_sampler_that_ends_early_is_an_error(self):
        with self.assertRaisesRegex(servers.BenchmarkError, 'ended early'), cold_cache.disk_wait_share(self.server(os.getpid())):
            for sampler in multiprocessing.active_children():
                sampler.kill()
                sampler.join()


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


if __name__ == '__main__':
    unittest.main()
