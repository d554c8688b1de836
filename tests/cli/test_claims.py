"""A search that proves nothing says so in text, JSON, JUnit XML and exit code."""

import json
import unittest

from support import FIXED, LOST_UPDATE, STEPS, Case

SPINS = """
name = "spins"
[expect]
kinds = []
[shared]
x = { init = 0, atomic = true }
[[thread]]
name = "worker"
copies = 2
code = "for i in 0..100 { x = i }"
"""


def kinds(result):
    return {caveat["kind"] for caveat in result["caveats"]}


class Claims(Case):
    def test_no_execution_that_ends_is_no_green_light(self):
        file = self.write("spins.toml", SPINS)
        for strategy in ("dfs", "dpor", "portfolio", "random"):
            for more in ((), ("--expect",)):
                arguments = ["explore", file, "--strategy", strategy, "--schedules", 20, "--max-steps", 50, "--out", "",
                             "--detectors", "failure", *more]
                done = self.expect(2, *arguments)
                self.assertIn("cut off after 50 steps; allow more with --max-steps", " ".join(done.stderr.split()))
                self.assertIn("nothing reached its end", done.stdout)
                self.assertNotIn("as expected", done.stdout)
                self.assertRegex(done.stdout, r"  0 distinct interleavings, \d+ cut off, ")
                self.assertNotIn("xhausted", done.stdout)
        self.assertFalse(json.loads(self.expect(2, *arguments, "--json").stdout)["expected"]["met"])
        self.expect(2, *arguments, "--junit", "spins.xml")
        self.assertIn("<error", (self.directory / "spins.xml").read_text())
        self.expect(0, "explore", file, "--strategy", "random", "--schedules", 20, "--out", "", "--expect")

    def test_no_time_is_no_green_light(self):
        done = self.slalom("explore", self.write("steps.toml", STEPS), "--time", "0.000001", "--out", "", "--json")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("give the search more time", done.stderr)

    def test_switches_that_are_left_out(self):
        for choices, strategy, expected in (("everywhere", "dfs", set()), ("nowhere", "dfs", {"blocked-only"}), ("sync", "dfs", {"late-races"})):
            result = self.json(1 if choices != "nowhere" else 0, "explore", LOST_UPDATE, "--strategy", strategy, "--choices", choices,
                               "--detectors", "failure,race" if choices == "sync" else "failure", "--out", "")
            self.assertEqual((result["exhausted"], kinds(result)), (not expected, expected), choices)
        ignored = self.json(0, "explore", LOST_UPDATE, "--strategy", "dfs", "--choices", "sync", "--detectors", "failure", "--out", "")
        self.assertEqual(kinds(ignored), {"races-ignored"})

    def test_bounds_and_limits_are_listed(self):
        bounded = self.json(0, "explore", "examples/toy/aba-stack.fixed.toml", "--strategy", "dfs:limit=2", "--out", "")
        self.assertEqual((bounded["exhausted"], kinds(bounded)), (True, {"bound"}))
        for options, expected in ((("--strategy", "random", "--schedules", 3), {"schedule-limit"}),
                                  (("--strategy", "dfs", "--schedules", 1), {"schedule-limit"})):
            self.assertEqual(kinds(self.json(0, "explore", FIXED, *options, "--out", "")), expected)
        found = self.json(1, "explore", LOST_UPDATE, "--first", "--strategy", "random", "--out", "")
        self.assertEqual(kinds(found), {"first-failure"})


if __name__ == "__main__":
    unittest.main()
