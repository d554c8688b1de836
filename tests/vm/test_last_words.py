"""A kernel that postpones its last messages (Linux 6.12's printk, if it must not wait for the console) to an interrupt that does not
arrive because the kernel's preemption count is wrong. The report is complete nevertheless."""

import json
import subprocess
import sys
import unittest

from guest import DEADLINE, NOTHING_TO_DO, ROOT, SLALOM, Guest, cached_kernels

KERNEL = "debian:6.12"
FOLDER = ROOT / "examples" / "kernel-modules" / "sleep_atomic"
TITLE = "scheduling while atomic in sleep_atomic:set_filter"


class LastWords(Guest):
    def explore(self, name, *more):
        """The findings of the example's test on the newer kernel."""
        test = self.directory / name
        test.write_text((FOLDER / name).read_text().replace('"debian:6.1"', f'"{KERNEL}"'))
        done = subprocess.run([SLALOM, "explore", test, "--json", "--detectors", "console,deadlock,failure", *map(str, more)],
                              cwd=self.directory, capture_output=True, text=True, timeout=DEADLINE, check=False)
        if done.returncode == 2 and "scripts/build-modules" in done.stderr:
            print(done.stderr)
            sys.exit(NOTHING_TO_DO)
        self.assertIn(KERNEL, test.read_text())
        return json.loads(done.stdout)

    def test_the_report_names_the_function_whichever_way_it_ends(self):
        for seed in (1, 2, 3):
            result = self.explore("test.toml", "--schedules", 400, "--seed", seed, "--no-shrink", "--out", "")
            self.assertEqual([(f["title"], f["replayed"]) for f in result["findings"]], [(TITLE, "10/10")])
            self.assertEqual(result["trouble"], [])

    def test_it_is_whole_in_the_capsule_and_comes_back(self):
        found = self.explore("test.toml", "--schedules", 400, "--first", "--out", "out")["findings"][0]
        self.assertIn("Call Trace:", found["detail"])
        again = subprocess.run([SLALOM, "replay", found["capsule"], "--times", "3"], cwd=self.directory, capture_output=True, text=True,
                               timeout=DEADLINE, check=False)
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn(TITLE, " ".join(again.stdout.split()))

    def test_every_such_execution_is_the_same_twice(self):
        result = self.explore("test.toml", "--schedules", 200, "--run-twice", "--no-shrink", "--out", "")
        self.assertEqual((result["executions"], result["diverged"], result["trouble"]), (200, 0, []))
        self.assertEqual([f["title"] for f in result["findings"]], [TITLE])

    def test_nothing_is_found_in_the_twin(self):
        self.assertEqual(self.explore("fixed.toml", "--schedules", 400, "--out", "")["findings"], [])


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        sys.exit(NOTHING_TO_DO)
    unittest.main()
