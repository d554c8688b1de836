"""Help, version, and every kind of wrong use: the message says what is wrong and what to do, and the exit code is 2."""

import re
import shutil
import subprocess
import unittest
from pathlib import Path

from support import FIXED, LOST_UPDATE, SLALOM, Case, environment

VERBS = ["run", "cc", "explore", "replay", "findings", "trace", "detect", "boot", "kernel", "new", "doctor"]


class Help(Case):
    def test_the_tour_names_every_verb(self):
        for arguments in ([], ["--help"], ["-h"]):
            tour = self.expect(0, *arguments)
            self.assertEqual(re.findall(r"^  slalom (\w+) .*  ", tour.stdout, re.M), VERBS)

    def test_every_verb_explains_all_its_options(self):
        for verb in VERBS:
            for flag in ("--help", "-h"):
                told = self.expect(0, verb, flag)
                self.assertTrue(told.stdout.startswith(f"slalom {verb}"), told.stdout)
                self.assertLessEqual(max(map(len, told.stdout.splitlines())), 80)

    def test_help_is_a_verb_too(self):
        self.assertEqual(self.expect(0, "help").stdout, self.expect(0).stdout)
        for verb in VERBS:
            self.assertEqual(self.expect(0, "help", verb).stdout, self.expect(0, verb, "--help").stdout)
        unknown = self.expect(2, "help", "exlpore")
        self.assertIn('there is no verb "exlpore"', unknown.stderr)

    def test_explore_names_each_kind_of_target_and_its_strategy(self):
        text = " ".join(self.expect(0, "explore", "--help").stdout.split())
        for words in ["a kernel test (", "a toy program (", "slalom run", "slalom::check",
                      "(default: of a kernel test pos; of a toy program dpor, dfs if it yields)"]:
            self.assertIn(words, text)
        self.assertIn("(default: portfolio)", self.expect(0, "run", "--help").stdout)

    def test_help_comes_before_what_is_missing_or_wrong(self):
        self.expect(0, "explore", "--help", "no-such-file.toml")
        self.expect(0, "explore", FIXED, "--help")

    def test_the_tour_shows_commands_that_work(self):
        tour = self.expect(0).stdout
        shown = re.findall(r"^  slalom (explore \S+\.toml)$", tour, re.M)
        self.assertEqual([self.slalom(*line.split()).returncode for line in shown], [1, 0])

    def test_help_lists_the_strategies_and_detectors_that_exist(self):
        text = self.expect(0, "explore", "--help").stdout
        strategies, detectors = text.split("Strategies, ")[1].split("Detectors, ")
        for name in re.findall(r"^  (\S+) ", strategies, re.M):
            self.expect(0, "explore", FIXED, "--strategy", name, "--schedules", 20)
        for name in re.findall(r"^  (\S+) ", detectors, re.M):
            if name.startswith("kernel"):  # locks of a toy program are not memory
                continue
            self.expect(0, "explore", FIXED, "--detectors", name)

    def test_version(self):
        self.assertRegex(self.expect(0, "--version").stdout, r"^slalom \d+\.\d+\.\d+\n$")


class Wrong(Case):
    def refused(self, *arguments, says, **options):
        done = self.expect(2, *arguments, **options)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("slalom: "), done.stderr)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, done.stderr)

    def test_words_that_do_not_exist(self):
        self.refused("exlpore", says=['there is no verb "exlpore"', "try: slalom --help"])
        self.refused("--vresion", says="there is no option --vresion")
        self.refused("explore", FIXED, "--strat", says=["there is no option --strat", "try: slalom explore --help"])
        self.refused("explore", FIXED, LOST_UPDATE, says=f"one argument too many: {LOST_UPDATE}")
        self.refused("explore", says="FILE is required")
        self.refused("replay", says="CAPSULE is required")

    def test_files_that_cannot_be_read(self):
        self.refused("explore", "none.toml", says="cannot read none.toml")
        self.refused("explore", "examples", says="it is a directory")
        self.refused("replay", "none.slalom", says="cannot read none.slalom")
        self.refused("trace", "none.slalom", says="cannot read none.slalom")
        self.refused("detect", "none.slalom", says="cannot read none.slalom")
        self.refused("findings", "none", says="there is no folder none")

    def test_programs_that_are_wrong_are_shown_by_line(self):
        for name, text, says in [
            ("a.toml", 'name = "a"\n[shared\n', "a.toml:2: "),
            ("b.toml", 'name = "b"\nnmae = "b"\n', "b.toml:2: unknown key `nmae`"),
            ("c.toml", 'name = "c"\n[[thread]]\nname = "t"\ncode = """\ny = 1\ny = 1 +\n"""\n', "c.toml:6: "),
            ("d.toml", 'name = "d"\n[[thread]]\nname = "t"\ncode = "lock m"\n', "d.toml:4: "),
        ]:
            self.refused("explore", self.write(name, text), says=says)

    def test_parameters(self):
        for setting in ("n", "n=", "=3", "n=x", "n=3x", "n=1e3"):
            self.refused("explore", "examples/toy/readers.toml", "--set", setting,
                         says=f'NAME=NUMBER, as in --set n=3, not "{setting}"')
        self.refused("explore", "examples/toy/readers.toml", "--set", "m=3", says="there is no parameter `m`")

    def test_strategies_and_their_settings(self):
        self.refused("explore", FIXED, "--strategy", "bfs", says=['no strategy "bfs"', "dpor, dfs, pct"])
        self.refused("explore", FIXED, "--strategy", "pct:deep=2", says=['no setting "deep"', "depth=N"])
        self.refused("explore", FIXED, "--strategy", "pct:depth=0", says="depth is at least 1")
        self.refused("explore", FIXED, "--strategy", "pct:depth=34", says="at most 33")
        self.refused("explore", FIXED, "--strategy", "pct:depth=2,", says="an empty setting")
        self.refused("explore", FIXED, "--strategy", "pct:k=many", says='k takes a whole number, not "many"')
        self.refused("explore", FIXED, "--strategy", "dfs:bound=5", says='preemptions, delays or none, not "5"')
        self.refused("explore", FIXED, "--strategy", "dfs:bound=none,limit=1", says="limit needs a bound")
        self.refused("explore", FIXED, "--strategy", "surw:interesting=me", says='all, object or alternate, not "me"')
        self.refused("explore", FIXED, "--strategy", "dpor", "--choices", "sync", says=["--choices everywhere", "dpor:coarse"])

    def test_detectors(self):
        for given, unknown in (("races", "races"), ("race,lock", "lock"), ("race,", "")):
            self.refused("explore", FIXED, "--detectors", given, says=[f"unknown detector '{unknown}'", "failure, deadlock"])

    def test_numbers_and_words(self):
        for option, value, says in [
            ("--choices", "here", 'everywhere, sync or nowhere, not "here"'),
            ("--workers", "0", 'a whole number from 1 to 256, not "0"'),
            ("--workers", "two", 'a whole number from 1 to 256, not "two"'),
            ("--seed", "-1", 'a whole number of at least 0, not "-1"'),
            ("--seed", "18446744073709551616", "a whole number of at least 0"),
            ("--schedules", "0", "a whole number of at least 1"),
            ("--schedules", "1.5", 'not "1.5"'),
            ("--max-steps", "0", "a whole number of at least 1"),
        ] + [("--time", value, f'30s, 5m or 2h, not "{value}"') for value in ("0", "-1s", "5x", "s", "nan", "inf", "1 s")]:
            self.refused("explore", FIXED, option, value, says=says)

    def test_the_port_of_gdb(self):
        for port in ("65536", "-1", "ssh"):
            self.refused("boot", "--gdb", port, says=f'--gdb: takes a whole number from 0 to 65535, not "{port}"')

    def test_replay_options(self):
        capsule = self.capsule()
        self.refused("replay", capsule, "--choices", "here", says='everywhere, sync or nowhere, not "here"')
        self.refused("replay", capsule, "--times", "0", says="a whole number from 1 to 1000000")
        self.refused("replay", capsule, "--save-trace", "none/trace.slalom", says="cannot write none/trace.slalom")

    def test_places_that_cannot_be_written(self):
        self.refused("explore", LOST_UPDATE, "--out", LOST_UPDATE, says=["cannot write findings to", "--out"])
        self.refused("explore", LOST_UPDATE, "--out", "/proc/findings", says=["cannot write findings to", "--out"])

        self.refused("explore", FIXED, "--state", "none/search", says="cannot write none/search")

    def test_findings_that_cannot_be_kept_are_shown(self):
        # For each finding a file takes the place of its folder, so no capsule can be written.
        found = self.expect(1, "explore", LOST_UPDATE, "--out", "found")
        for folder in filter(Path.is_dir, list((self.directory / "found").iterdir())):
            shutil.rmtree(folder)
            folder.write_text("in the way")
        done = self.expect(2, "explore", LOST_UPDATE, "--out", "found")
        self.assertIn("assertion failed: final check: an update was lost", done.stdout)
        self.assertNotIn("slalom replay", done.stdout)
        self.assertIn("cannot write", done.stderr)
        self.assertIn("slalom replay", found.stdout)
        done = self.expect(2, "explore", LOST_UPDATE, "--out", "", "--junit", "none/results.xml")
        self.assertIn("an update was lost", done.stdout)

    def test_results_that_cannot_be_printed(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([SLALOM, "explore", FIXED], cwd=self.directory, env=environment(), stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("could not be written", done.stderr)


class Foreign(Case):
    """Invalid capsules, traces and saved searches."""

    def refused(self, *arguments, says):
        done = self.expect(2, *arguments)
        self.assertEqual(done.stdout, "")
        self.assertIn(says, done.stderr)

    def test_capsules(self):
        good = (self.directory / self.capsule()).read_bytes()
        for name, content, says in [
            ("empty", b"", "empty file, not a capsule"),
            ("foreign", b"\x7fELF" + good, "not a slalom file; a capsule is needed here"),
            ("stub", good[:20], "truncated: 20 of at least 40 bytes"),
            ("short", good[:-1], f"truncated: {len(good) - 41} of {len(good) - 40} bytes of contents"),
            ("long", good + b"\n", "corrupted: 1 bytes too many"),
            ("flipped", good[:60] + bytes([good[60] ^ 1]) + good[61:], "corrupted: its checksum does not match"),
            ("newer", good[:10] + b"\xff\x7f" + good[12:], "corrupted"),
        ]:
            (self.directory / name).write_bytes(content)
            self.refused("replay", name, says=f"{name}: {says}")

    def test_good_files_of_another_kind(self):
        capsule = self.capsule()
        self.expect(1, "replay", capsule, "--save-trace", "trace.slalom")
        self.refused("replay", "trace.slalom", says="this is a trace, not a capsule; use `slalom trace`")
        for verb in ("trace", "detect"):
            self.refused(verb, capsule, says="this is a capsule, not a trace; use `slalom replay`")
        self.refused("explore", FIXED, "--state", capsule, says="this is a capsule, not a search state")

    def test_the_saved_search_of_another_job(self):
        self.expect(0, "explore", FIXED, "--strategy", "pct", "--schedules", "100", "--state", "search")
        before = (self.directory / "search").read_bytes()
        for other in (
            ["explore", LOST_UPDATE, "--strategy", "pct"],
            ["explore", FIXED, "--strategy", "pos"],
            ["explore", FIXED, "--strategy", "pct:depth=2"],
            ["explore", FIXED, "--strategy", "pct", "--seed", "2"],
            ["explore", FIXED, "--strategy", "pct", "--choices", "sync"],
            ["explore", FIXED, "--strategy", "pct", "--max-steps", "99"],
            ["explore", FIXED, "--strategy", "pct", "--detectors", "race"],
        ):
            self.refused(*other, "--state", "search", says="the saved search of another job (pct of lost-update-fixed)")
        self.assertEqual((self.directory / "search").read_bytes(), before)

    def test_findings_that_cannot_be_read_do_not_hide_the_others(self):
        (self.directory / self.capsule()).write_bytes(b"")
        listed = self.expect(1, "findings")
        self.assertIn("capsule.slalom: empty file", listed.stderr)
        self.assertEqual(listed.stdout.count("data race on x"), 2)


if __name__ == "__main__":
    unittest.main()
