"""Tests one of examples/kernel-modules. Its bug is found with the title that its test file expects, and other processes reproduce
it; its fixed twin survives more schedules. The module's own functions have the expected races, those of the twin have none. The
argument is the name of the module's directory."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLALOM = os.environ.get("SLALOM", str(ROOT / "build" / "slalom"))
SCHEDULES = 8000  # at most: the search ends with the first finding, after some hundreds
FIXED_SCHEDULES = 1000
RACE_SCHEDULES = 200
REPLAYS = 3
NAME = sys.argv.pop(1)
FOLDER = ROOT / "examples" / "kernel-modules" / NAME


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, text=True, timeout=900)


def expectation():
    return tomllib.loads((FOLDER / "test.toml").read_text())["expect"]


FAILURES = "console,deadlock,failure,kernel-heap" + (",kernel-leak" if "leak" in expectation()["kinds"] else "")


def explore(test, schedules, out, *more, detectors=FAILURES):
    done = slalom("explore", FOLDER / test, "--schedules", schedules, "--workers", 1, "--out", out, "--json",
                  "--detectors", detectors, *more)
    if done.returncode == 2 and ("slalom kernel get" in done.stderr or "scripts/build-modules" in done.stderr):
        print(done.stderr)
        sys.exit(77)  # skipped: the kernel or the modules are missing
    return done


def races(test):
    """Titles of races with a side in one of the module's own functions."""
    done = explore(test, RACE_SCHEDULES, "", "--no-shrink", detectors="kernel-race,kernel-interrupted")
    titles = [f["title"] for f in json.loads(done.stdout)["findings"] if f["severity"] == "race"]
    return sorted(title for title in titles if f" {NAME}:" in title or f" {NAME}_fixed:" in title)


class Module(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def test_the_bug_is_found_and_comes_back(self):
        done = explore("test.toml", SCHEDULES, self.scratch.name, "--first", "--expect")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "failure"]
        self.assertLessEqual({(f["kind"], f["title"]) for f in found}, set(zip(expectation()["kinds"], expectation()["titles"])))
        self.assertIn(found[0]["minimality"], ("minimal", "minimum"))
        self.assertEqual(found[0]["replayed"], "10/10")
        for _ in range(REPLAYS):
            again = slalom("replay", found[0]["capsule"])
            self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
            self.assertIn(found[0]["title"], " ".join(again.stdout.split()))  # lines are wrapped

    def test_nothing_is_found_in_the_twin(self):
        done = explore("fixed.toml", FIXED_SCHEDULES, "")
        result = json.loads(done.stdout) if done.stdout else {}
        self.assertEqual([f["title"] for f in result.get("findings", []) if f["severity"] == "failure"], [], done.stderr)
        self.assertEqual(result.get("executions"), FIXED_SCHEDULES, result)

    def test_only_the_expected_races_are_the_modules(self):
        expected = [title for title in expectation()["titles"] if title.startswith(("data race: ", "interrupted update: "))]
        self.assertEqual(races("test.toml"), sorted(expected))
        self.assertEqual(races("fixed.toml"), [])


if __name__ == "__main__":
    unittest.main()
