"""A capsule is the whole bug: it replays in another process, another directory, under any choice policy."""

import re
import shutil
import tempfile
import unittest
from pathlib import Path

from support import LOST_UPDATE, ROOT, Case

# One of each kind of bug.
BUGS = {
    "assertion": LOST_UPDATE,
    "crash": "examples/toy/null-after-check.toml",
    "data-race": LOST_UPDATE,
    "deadlock": "examples/toy/abba-deadlock.toml",
    "double-free": "examples/toy/refcount-double-free.toml",
    "lost-wakeup": "examples/toy/missed-signal.toml",
    "use-after-free": "examples/toy/free-while-reading.toml",
}


class Replay(Case):
    def test_every_kind_of_bug_elsewhere_and_under_any_choices(self):
        for kind, program in BUGS.items():
            capsule = self.directory / self.capsule(program, kind)
            found = self.json(1, "replay", capsule)
            self.assertTrue(found["same"])
            with tempfile.TemporaryDirectory() as elsewhere:  # a folder that contains only the capsule
                alone = shutil.copy(capsule, Path(elsewhere) / "bug.slalom")
                for choices in ("as found", "everywhere", "sync", "nowhere"):
                    replayed = self.json(1, "replay", "bug.slalom", "--choices", choices, cwd=elsewhere)
                    self.assertEqual({**replayed, "capsule": None}, {**found, "capsule": None}, f"{kind} under {choices}")
                self.assertTrue(Path(alone).exists())

    def test_as_it_was_before_it_was_shrunk(self):
        program = "examples/toy/semaphore-as-mutex.toml"
        found = self.json(1, "explore", program, "--strategy", "random")["findings"][0]
        shrunk, original = (self.json(1, "replay", found["capsule"], *options) for options in ([], ["--original"]))
        self.assertEqual(shrunk["title"], original["title"])
        self.assertGreater(len(original["schedule"]["switches"]), len(shrunk["schedule"]["switches"]))
        kept = self.json(1, "explore", program, "--strategy", "random", "--no-shrink", "--out", "kept")["findings"][0]
        self.assertEqual(kept["schedule"], original["schedule"])
        self.assertEqual(kept["minimality"], "unshrunk")

    def test_many_times(self):
        done = self.expect(1, "replay", self.capsule(), "--times", 25)
        self.assertRegex(done.stdout, r"the same in 25 of 25 replays; same state hash 0x[0-9a-f]{16}\n$")
        self.assertIn("Replayed 25/25", done.stdout)

    def test_by_the_folder_it_is_kept_in(self):
        folder = (self.directory / self.capsule()).parent
        self.assertIn("the same again", self.expect(1, "replay", folder).stdout)
        (folder / "capsule.slalom").unlink()
        self.assertIn(f"{folder}/capsule.slalom", self.expect(2, "replay", folder).stderr)

    def test_the_report_of_a_replay_is_the_one_that_was_kept(self):
        capsule = self.capsule()
        kept = (self.directory / capsule).with_name("report.txt").read_text(encoding="utf-8")
        told = self.expect(1, "replay", capsule, "--times", 10).stdout
        for drawn, ascii in (("→", "->"), ("•", "*")):
            kept = kept.replace(drawn, ascii)
        self.assertEqual(kept.split("\nWhy\n")[1], re.sub(r"\nthe same in 10 of 10 replays; same state hash \S+\n$", "", told.split("\nWhy\n")[1]))

    def test_what_the_target_became_does_not_matter(self):
        self.write("bug.toml", (ROOT / LOST_UPDATE).read_text(encoding="utf-8"))
        capsule = self.capsule("bug.toml")
        (self.directory / "bug.toml").unlink()
        self.expect(1, "replay", capsule)

    def test_a_bug_that_does_not_show_again(self):
        # The second execution of a process differs from the first, and a replay is always the first.
        self.write("flaky.toml", """
name = "flaky"
[shared]
runs = { init = 0, atomic = true, persistent = true }
[[thread]]
name = "t"
code = 'assert fetch_add(runs, 1) == 0 "not the first"'
""")
        found = self.slalom("explore", "flaky.toml", "--strategy", "random", "--workers", 1, "--schedules", 10)
        self.assertEqual(found.returncode, 1)
        self.assertIn("Replayed only 0/10", found.stdout)
        capsule = next(self.directory.glob("slalom-findings/*/capsule.slalom"))
        gone = self.expect(0, "replay", capsule, "--times", 3)
        self.assertIn("NOT the same: seen again in 0 of 3 replays\n  expected: assertion failed", gone.stdout)


class Trace(Case):
    def test_a_saved_trace_prints_what_the_replay_printed(self):
        for kind, program in BUGS.items():
            capsule = self.capsule(program, kind)
            report = self.expect(1, "replay", capsule).stdout
            both = self.expect(1, "replay", capsule, "--trace", "--save-trace", "trace.slalom").stdout
            named = self.expect(0, "trace", "trace.slalom", "--capsule", capsule).stdout
            self.assertEqual(both, report.replace("\nthe same again", f"\n{named}\nthe same again"))
            bare = self.expect(0, "trace", "trace.slalom").stdout
            self.assertEqual(len(bare.splitlines()), len(named.splitlines()))

    def test_the_trace_of_a_lost_update(self):
        capsule = self.capsule()
        lines = self.expect(1, "replay", capsule, "--trace").stdout.splitlines()
        steps = [line for line in lines if "worker#" in line and (" load " in line or " store " in line)]
        self.assertEqual(["load" if " load " in step else "store" for step in steps], ["load", "load", "store", "store"])


if __name__ == "__main__":
    unittest.main()
