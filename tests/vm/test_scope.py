"""A scope of a kernel: partial-order reduction makes as many executions as depth-first search finds classes, finds the bug, and exhausts
the fixed twin. `contexts` restricts which contexts are explored."""

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


def slalom(*arguments):
    done = subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode == 2 and ("slalom kernel get" in done.stderr or "scripts/build-modules" in done.stderr):
        print(done.stderr)
        sys.exit(77)  # skipped: the kernel or the modules are missing
    return done


def explore(module, which, *more):
    done = slalom("explore", MODULES / module / f"{which}.toml", "--workers", 1, "--json", *more)
    return done, json.loads(done.stdout) if done.stdout else {}


def failures(result):
    return [f["title"] for f in result["findings"] if f["severity"] == "failure"]


SCOPED = ("--out", "", "--no-shrink", "--detectors", "console,deadlock,failure")


class Scope(unittest.TestCase):
    def scoped(self, module, which, strategy, *more):
        name = module if which == "test" else f"{module}_fixed"
        done, result = explore(module, which, "--scope", f"module:{name}", "--strategy", strategy, *SCOPED, *more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return result

    def test_as_many_executions_as_there_are_classes(self):
        for which in ("test", "fixed"):
            reduced = self.scoped("torn_read", which, "dpor")
            self.assertTrue(reduced["exhausted"])
            self.assertEqual((reduced["diverged"], reduced["truncated"]), (0, 0))
            self.assertEqual(reduced["executions"], reduced["classes"])
            # Without the lock no flow waits, so all interleavings can be tried: 16 over 6.
            every = self.scoped("torn_read", which, *(("dfs",) if which == "test" else ("pos", "--schedules", 2000)))
            self.assertEqual(every["exhausted"], which == "test")
            self.assertEqual(every["executions"], 8008 if which == "test" else 2000)
            self.assertEqual(every["classes"], reduced["classes"])
            for result in (reduced, every):
                self.assertEqual(len(failures(result)), 1 if which == "test" else 0)

    def test_a_deadlock_is_found_and_its_twin_exhausted(self):
        bug = self.scoped("abba", "test", "dpor")
        self.assertEqual(failures(bug), ["deadlock: back waits in abba:transfer; forth waits in abba:transfer"])
        self.assertEqual((bug["exhausted"], bug["diverged"]), (True, 0))
        twin = self.scoped("abba", "fixed", "dpor")
        self.assertEqual((twin["exhausted"], twin["executions"], failures(twin)), (True, twin["classes"], []))

    def test_what_is_found_replays(self):
        with tempfile.TemporaryDirectory() as out:
            _, result = explore("torn_read", "test", "--scope", "module:torn_read", "--strategy", "dpor", "--out", out,
                                "--detectors", "failure")
            self.assertEqual(result["findings"][0]["replayed"], "10/10")
            self.assertEqual(slalom("replay", result["findings"][0]["capsule"]).returncode, 1)

    def test_it_is_said_what_was_exhausted(self):
        told = slalom("explore", MODULES / "torn_read" / "fixed.toml", "--scope", "module:torn_read_fixed", "--strategy", "dpor",
                      "--out", "", "--workers", 1).stdout
        self.assertIn("exhausted within scope: every order of dependent transitions between the choice points was executed, of those in module:torn_read_fixed",
                      " ".join(told.split()))

    def test_a_scope_that_is_nobodys_is_an_error(self):
        text = (MODULES / "torn_read" / "test.toml").read_text()
        for scope, words in (("module:torn_reed", "the scope \"module:torn_reed\" is no module that is loaded; these are: torn_read"),
                             ("function:no_such_*", "the scope \"function:no_such_*\" is no function of this kernel"),
                             ("torn_read", "a scope is \"module:NAME\"")):
            given = slalom("explore", MODULES / "torn_read" / "test.toml", "--scope", scope)
            self.assertEqual(given.returncode, 2)
            self.assertTrue(given.stderr.startswith("slalom: --scope"), given.stderr)
            self.assertIn(words, " ".join(given.stderr.split()))
            with tempfile.TemporaryDirectory() as folder:
                test = pathlib.Path(folder) / "test.toml"
                test.write_text(f'\nscope = "{scope}"\n{text}')
                written = slalom("explore", test)
                self.assertEqual(written.returncode, 2)
                self.assertTrue(written.stderr.startswith(f"slalom: {test}:2: "), written.stderr)
                self.assertIn(words, " ".join(written.stderr.split()))

    def test_lines_of_the_file_are_its_own(self):
        """Also if the command line sets something that could be in the file."""
        with tempfile.TemporaryDirectory() as folder:
            test = pathlib.Path(folder) / "test.toml"
            test.write_text((MODULES / "torn_read" / "test.toml").read_text() + "\nsurprise = 1\n")
            line = test.read_text().count("\n")
            told = slalom("explore", test, "--scope", "module:torn_read").stderr
            self.assertTrue(told.startswith(f"slalom: {test}:{line}: unknown key `surprise`"), told)


class Contexts(unittest.TestCase):
    def test_only_those_listed_are_explored(self):
        """A CPU that is not listed runs only if no other one can, so one order is left."""
        text = (MODULES / "torn_read" / "test.toml").read_text()
        for contexts, executions in (('["cpu0", "cpu1"]', 8008), ('["cpu0"]', 1), ('["cpu1"]', 1)):
            with tempfile.TemporaryDirectory() as folder:
                test = pathlib.Path(folder) / "test.toml"
                test.write_text(f'scope = "module:torn_read"\ncontexts = {contexts}\n{text}')
                result = json.loads(slalom("explore", test, "--strategy", "dfs", "--workers", 1, "--json", *SCOPED).stdout)
                self.assertEqual((result["exhausted"], result["executions"]), (True, executions))
                self.assertEqual(len(failures(result)) > 0, executions > 1)

    def test_what_is_not_listed_is_in_no_schedule(self):
        """A bug that needs an interrupt, which the search decides about or which arrives by itself."""
        text = (MODULES / "irq_context" / "test.toml").read_text()
        ipi, timer = "irq43", "irq28"  # vectors 0xfb and 0xec, counted from 0xd0
        for contexts, may, must in (('["cpu0", "cpu1", "ipi"]', {ipi}, {ipi}), ('["cpu0", "cpu1", "timer"]', {timer}, set()),
                                    ('["cpu0", "cpu1"]', set(), set())):
            with self.subTest(contexts=contexts), tempfile.TemporaryDirectory() as folder:
                test = pathlib.Path(folder) / "test.toml"
                test.write_text(f"contexts = {contexts}\n{text}")
                done = slalom("explore", test, "--first", "--workers", 1, "--out", folder, "--json", "--detectors", "deadlock",
                              "--strategy", "random", "--schedules", 1000)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                result = json.loads(done.stdout)
                self.assertEqual(failures(result), ["deadlock: adder waits in irq_context:fold_here"])
                decided = {one["to"].split(".")[1] for one in result["findings"][0]["schedule"]["switches"] if "." in one["to"]}
                self.assertLessEqual(decided, may)
                self.assertGreaterEqual(decided, must)
                self.assertEqual(slalom("replay", result["findings"][0]["capsule"]).returncode, 1)

    def test_threads_that_cannot_be_pinned_are_named(self):
        """Rescuers of work queues are unpinned threads. Threads that slalom has pinned or the kernel has bound are not listed."""
        test = MODULES / "torn_read" / "fixed.toml"
        result = json.loads(slalom("explore", test, "--schedules", 1, "--out", "", "--json").stdout)
        threads = result["unpinned_threads"]
        self.assertIn("netns", threads)
        self.assertFalse([name for name in threads if name.startswith(("kswapd", "kthreadd", "ksoftirqd", "migration", "cpuhp"))])
        told = slalom("explore", test, "--schedules", 1, "--out", "").stdout
        self.assertIn(f"not controlled: when {len(threads)} threads of the kernel run, which cannot be pinned to a CPU: such as {threads[0]} ",
                      " ".join(told.split()))
        told = slalom("explore", test, "--schedules", 1, "--out", "", "--full").stdout
        self.assertIn(", ".join(threads), " ".join(told.split()))


if __name__ == "__main__":
    unittest.main()
