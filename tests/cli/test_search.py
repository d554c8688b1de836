"""A search as a user sees it: the same results with any number of workers and after any interruption; the progress line."""

import json
import math
import re
import time
import unittest

from support import DEADLINE, LOST_UPDATE, STEPS, Case


def without_time(result):
    return {name: value for name, value in result.items() if name not in ("seconds", "resumed")}


class Workers(Case):
    def test_the_same_findings_and_counts_on_any_number(self):
        for program in (LOST_UPDATE, "examples/toy/one-condvar.toml", "examples/toy/readers.toml"):
            for strategy in ("dpor", "dfs", "pct", "pos", "surw", "random", "portfolio"):
                arguments = ["explore", program, "--strategy", strategy, "--schedules", 300, "--out", ""]
                one, two, three = (without_time(self.json(1, *arguments, "--workers", n)) for n in (1, 2, 3))
                self.assertEqual(one, two, f"{program} by {strategy}")
                self.assertEqual(one, three, f"{program} by {strategy}")

    def test_another_seed_is_another_search(self):
        arguments = ["explore", self.write("racy.toml", STEPS.replace(", atomic = true", "")), "--strategy", "random", "--no-shrink"]
        first, again, other = (
            [finding["schedule"] for finding in self.json(1, *arguments, "--seed", seed, "--out", "")["findings"]] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)


class Remarks(Case):
    def test_a_program_in_which_nothing_can_be_interleaved(self):
        thread = '[[thread]]\nname = "t"\ncode = """\nyield\n"""\n'
        for text, remark in [("", "the file has no [[thread]]: there is nothing to execute"),
                             ('name = "x"\n' + thread, "the program has one thread: there is nothing to interleave")]:
            program = self.write("few.toml", text)
            self.assertEqual(self.json(0, "explore", program, "--out", "")["trouble"], [remark])
            self.assertIn(f"warning: {remark}", self.expect(0, "explore", program, "--out", "").stdout)
        self.assertEqual(self.json(0, "explore", self.write("two.toml", 'name = "x"\n' + thread + "copies = 2\n"), "--out", "")["trouble"], [])


# Searches with a known number of executions, in sizes to choose from, so that they are long enough to be interrupted on a fast
# machine.
def two_steppers(case):
    program = case.write("steps.toml", STEPS)
    for k in (10, 11, 12, 13):
        yield ["explore", program, "--set", f"k={k}", "--strategy", "dfs"], math.comb(2 * k, k)


def many_readers(_):
    for n in (15, 16, 18, 20):
        yield ["explore", "examples/toy/readers.toml", "--set", f"n={n}", "--strategy", "dpor", "--out", ""], 2**n


class Resume(Case):
    def killed(self, search):
        """Returns searches that were killed after they had been saved."""
        for arguments, total in search(self):
            state = self.directory / f"state-{total}"
            process = self.start(*arguments, "--state", state)
            deadline = time.monotonic() + DEADLINE
            saves = set()  # the first save, at the start, is still empty; each save is a new file
            while len(saves) < 2 and process.poll() is None and time.monotonic() < deadline:
                if state.exists():
                    saves.add((state.stat().st_ino, state.stat().st_mtime_ns))
                time.sleep(0.01)
            process.kill()
            if process.wait() == -9:
                self.assertTrue(state.exists(), "nothing was saved")
                yield [*arguments, "--state", state], total

    def check_resumed(self, search):
        for arguments, total in self.killed(search):
            done = self.slalom(*arguments, "--json")
            self.assertEqual(done.stderr, "")
            result = json.loads(done.stdout)
            self.assertEqual((result["executions"], result["exhausted"], result["end"]), (total, True, "done"))
            self.assertGreater(result["resumed"], 0)
            if result["resumed"] == total:
                continue  # it was killed between the end of the search and that of the process
            again = json.loads(self.slalom(*arguments, "--json").stdout)  # now nothing is left to do
            self.assertEqual(again["resumed"], total)
            self.assertEqual(without_time(again), without_time(result))
            return
        self.fail("every search ended before it could be killed")

    def test_dfs_goes_on_after_kill_9(self):
        self.check_resumed(two_steppers)

    def test_dpor_goes_on_after_kill_9(self):
        self.check_resumed(many_readers)

    def test_samples_made_in_two_runs_are_those_of_one(self):
        racy = self.write("racy.toml", STEPS.replace(", atomic = true", ""))
        for strategy in ("pct:depth=3", "pos", "surw", "random", "portfolio"):
            arguments = ["explore", racy, "--strategy", strategy]
            whole = self.json(1, *arguments, "--schedules", 600, "--out", "whole")
            self.json(1, *arguments, "--schedules", 256, "--state", strategy, "--out", "parts")
            parts = self.json(1, *arguments, "--schedules", 600, "--state", strategy, "--out", "parts")
            self.assertEqual(parts["resumed"], 256)
            self.assertEqual(len(whole["findings"]), 1)
            for result in (whole, parts):
                for finding in result["findings"]:
                    del finding["capsule"]
            self.assertEqual(without_time(parts), without_time(whole), strategy)


class OnATerminal(Case):
    def test_progress_and_ctrl_c(self):
        """There is a progress line while the search runs. Ctrl-C ends it at once, with results so far and a saved search to
        continue."""
        for arguments, total in two_steppers(self):
            shown = self.terminal(*arguments, "--state", "search")
            try:
                shown.read_until(" executions")
            except AssertionError:
                continue  # too fast to show any progress
            shown.interrupt()
            interrupted = time.monotonic()
            code = shown.wait()
            if "interrupted" not in shown.text:
                continue
            self.assertLess(time.monotonic() - interrupted, 5)  # much less than the whole search takes, even on a busy machine
            break
        else:
            self.fail("every search ended before it could be interrupted")
        self.assertEqual(code, 0)
        progress, result = shown.text.rsplit("\r\x1b[K", 1)
        self.assertRegex(progress, r"\r\x1b\[K  searching: [\d,]+ of about [\d,]+ executions \(\d+ %\), [\d,]+/s, .* left\r")
        self.assertIn("\r\x1b[Kslalom: stopping; keeping what was found (again: at once)\r\n", progress)
        self.assertLess(max(len(line) for line in re.split(r"\r(?:\x1b\[K)?|\n", progress)), 80)
        self.assertRegex(result, r"steps: .*nothing found.* in [\d,]+ executions by dfs")
        self.assertIn("interrupted: the same command goes on from search", result.replace("\r\n", " "))

        rest = self.json(0, *arguments, "--state", "search")
        self.assertEqual((rest["executions"], rest["exhausted"]), (total, True))
        self.assertTrue(0 < rest["resumed"] < total)

    def test_no_progress_where_nobody_looks(self):
        done = self.expect(0, "explore", self.write("steps.toml", STEPS), "--strategy", "dfs", "--time", "0.5s")
        self.assertEqual(done.stderr, "")
        self.assertNotIn("\r", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_colours_only_where_wanted(self):
        def screen(*arguments, **changes):
            shown = self.terminal(*arguments, **changes)
            shown.wait()
            return shown.text.split("\r\x1b[K")[-1]  # without progress lines

        for arguments in (["explore", LOST_UPDATE], ["findings"], ["doctor"]):
            self.assertIn("\x1b[", screen(*arguments))
            plain = screen(*arguments, NO_COLOR="1")
            self.assertNotIn("\x1b[", plain)
            self.assertNotIn("\x1b", self.slalom(*arguments).stdout)
            paths = [line for line in plain.splitlines() if line.split(" ")[-1].startswith("/")]  # as long as they are
            self.assertLessEqual(max(len(line) for line in plain.splitlines() if line not in paths), 80)
        self.assertIn("│", screen("explore", LOST_UPDATE))
        self.assertTrue(self.slalom("explore", LOST_UPDATE).stdout.replace("µs", "").isascii())


if __name__ == "__main__":
    unittest.main()
