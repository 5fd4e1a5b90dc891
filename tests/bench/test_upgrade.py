"""The longest interval between two responses of the scenario `upgrade`."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../bench'))
sys.dont_write_bytecode = True

from benchmark import model, servers, upgrade   # noqa: E402
from benchmark.scenarios import upgrade as scenario     # noqa: E402


class LongestGap(unittest.TestCase):
    def test_gaps_across_both_limits_count(self):
        times = [0, 1, 5, 6, 9, 10]
        self.assertEqual(upgrade.longest_gap(times, 5.5, 6.5), 3)
        self.assertEqual(upgrade.longest_gap(times, 0, 5), 4)
        self.assertEqual(upgrade.longest_gap(times, 5, 6), 1)

    def test_responses_are_required(self):
        for times in ([], [1], [1, 2]):
            with self.assertRaises(servers.BenchmarkError):
                upgrade.longest_gap(times, 3, 4)


class Target(unittest.TestCase):
    def row(self, *gaps):
        readings = [{'upgrade_gap': gap} for gap in gaps]
        return scenario.target_row(model.Outcome(scenario.LOAD, model.Setup('sluice'), readings))

    def test_every_round_must_meet_the_target(self):
        self.assertEqual(self.row(0.020, 0.049)[-1], '49.0 pass')
        self.assertEqual(self.row(0.020, 0.051, 0.010)[-1], '51.0 **MISS**')


if __name__ == '__main__':
    unittest.main()
