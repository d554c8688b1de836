"""Runs without control, for comparison; and findings of detectors that are off by default."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLALOM = os.environ.get("SLALOM", str(ROOT / "build" / "slalom"))
MODULES = ROOT / "examples" / "kernel-modules"
ALL = "console,deadlock,failure,kernel-heap,kernel-leak"


def explore(test, *more):
    done = subprocess.run([SLALOM, "explore", str(test), "--json", *map(str, more)], capture_output=True, text=True, timeout=600)
    if done.returncode == 2 and ("slalom kernel get" in done.stderr or "scripts/build-modules" in done.stderr):
        print(done.stderr)
        sys.exit(77)  # skipped: the kernel or the modules are missing
    return done


class Stress(unittest.TestCase):
    def test_bugs_are_rare_without_control(self):
        first, second = (explore(MODULES / "double_reset" / "test.toml", "--stress", 1000, "--detectors", ALL).stdout
                         for _ in range(2))
        self.assertEqual(first, second)
        told = json.loads(first)
        self.assertEqual(told["runs"], 1000)
        self.assertLess(told["failures"], 20)  # depends on the kernel's revision; some have none
        self.assertLessEqual(set(told["titles"]), {"double free: in double_reset:reset, freed before in double_reset:reset"})

    def test_failures_are_counted_by_title(self):
        with tempfile.TemporaryDirectory(prefix="slalom-vm-") as directory:
            test = pathlib.Path(directory) / "sure.toml"
            test.write_text('check = "exit 7"\n' + "".join(f'[[flow]]\nname = "{name}"\ncalls = "getppid()"\n' for name in ("one", "other")))
            told = json.loads(explore(test, "--stress", 20, "--detectors", ALL).stdout)
        [(title, times)] = told["titles"].items()
        self.assertIn("the check failed with status 7", title)
        self.assertEqual((told["runs"], told["failures"], times), (20, 20, 20))

    def test_twins_never_fail(self):
        for module in ("double_reset", "lost_buffer"):
            done = explore(MODULES / module / "fixed.toml", "--stress", 300, "--detectors", ALL)
            self.assertEqual((done.returncode, json.loads(done.stdout)["failures"]), (0, 0), done.stdout)

    def test_only_kernels_are_stressed(self):
        toy = next((ROOT / "examples" / "toy").glob("*.toml"))
        done = explore(toy, "--stress", 10)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no kernel test: leave out --stress", done.stderr)


class Leaks(unittest.TestCase):
    def test_are_seen_by_their_detector_only(self):
        for detectors, code in ((ALL, 1), (ALL.replace(",kernel-leak", ""), 0)):
            done = explore(MODULES / "lost_buffer" / "test.toml", "--schedules", 400, "--first", "--workers", 1, "--out", "",
                           "--no-shrink", "--detectors", detectors)
            self.assertEqual(done.returncode, code, done.stderr)


if __name__ == "__main__":
    unittest.main()
