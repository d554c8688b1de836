"""Exploring an unmodified kernel gives the same result with any number of workers, bit for bit, for every strategy."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, ROOT, SLALOM, cached_kernels

TEST = ROOT / "examples/kernel/tmpfs-torn-read.toml"
PAIRS = ROOT / "examples/kernel/pairs"
TITLE = "assertion failed: calls gave data that they give in no order of whole calls"


def explore(*arguments, test=TEST):
    done = subprocess.run([SLALOM, "explore", test, "--out", "", "--no-shrink", "--json", *map(str, arguments)],
                          capture_output=True, text=True, timeout=DEADLINE, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def without_times(result):
    return {key: value for key, value in result.items() if not key.endswith("seconds")}


class Explore(unittest.TestCase):
    maxDiff = None

    def test_it_is_the_same_on_any_number_of_workers(self):
        for strategy in ("pos", "pct"):
            one = explore("--schedules", 250, "--workers", 1, "--strategy", strategy)
            two = explore("--schedules", 250, "--workers", 2, "--strategy", strategy)
            self.assertEqual((one[0], without_times(one[1])), (two[0], without_times(two[1])))
            self.assertIn(TITLE, [finding["title"] for finding in one[1]["findings"]])

    def test_every_execution_is_the_same_twice(self):
        code, result = explore("--schedules", 60, "--run-twice", "--strategy", "random")
        self.assertEqual((result["executions"], result["diverged"], result["trouble"]), (60, 0, []))

    def test_it_is_the_same_twice_wherever_it_is_asked(self):
        # pct is asked rarely, but its schedules are checked everywhere. Interrupts nest here, spin, and are held back.
        for pair in ("mount-umount", "tty-set-read"):
            with self.subTest(pair=pair):
                code, result = explore("--schedules", 150, "--run-twice", "--strategy", "pct", test=PAIRS / f"{pair}.toml")
                self.assertEqual((result["executions"], result["diverged"], result["trouble"]), (150, 0, []))

    def test_the_scheduler_is_left_alone_unless_asked_for(self):
        with tempfile.TemporaryDirectory() as scratch:
            asked = pathlib.Path(scratch) / "asked.toml"
            asked.write_text("scheduler = true\n" + (PAIRS / "hostname.toml").read_text())
            steps = [explore("--schedules", 200, "--seed", 3, test=test)[1]["steps"] for test in (PAIRS / "hostname.toml", asked)]
        self.assertGreater(steps[1], 2 * steps[0])

    def test_every_strategy_finds_it(self):
        for strategy in ("random", "surw", "portfolio", "dfs:limit=1"):
            with self.subTest(strategy=strategy):
                code, result = explore("--schedules", 1500, "--strategy", strategy, "--first")
                self.assertEqual(code, 1, result)
                self.assertEqual(result["findings"][0]["title"], TITLE)


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        sys.exit(NOTHING_TO_DO)
    unittest.main()
