"""scripts/mutants: the list of planted faults fits the tree, and what is planted where. Nothing is built here."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load_script():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("mutants", str(ROOT / "scripts/mutants"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
    loader.exec_module(module)
    return module


mutants = load_script()

SOURCE = """\
int limit(int count) {
  if (count >= 10) return 10;
  flush();
  return count;
}
"""


class ListOfFaults(unittest.TestCase):
    def test_it_fits_the_tree(self):
        done = subprocess.run([ROOT / "scripts/mutants", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_all_folders_have_some(self):
        listed = mutants.read_list(ROOT)
        self.assertGreaterEqual(len(listed), 60)
        folders = {path.name for path in (ROOT / "src").iterdir() if any(path.rglob("*.cc"))}
        self.assertEqual(folders - {one["file"].split("/")[1] for one in listed}, set())


class Planting(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.write("src/base/limit.cc", SOURCE)
        self.write("tests/unit/base/limit_test.cc", "TEST(Limit, Holds) {\n}\nTEST_P(Limits, Hold) {\n}\n")
        self.write("tests/run/test_limits.py", "class Limits(ProgramTest):\n    def test_them(self):\n        pass\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def list_of(self, *entries):
        defaults = {"name": "fault", "file": "src/base/limit.cc", "line": "flush();", "new": "", "tests": ["base.Limit.*"]}
        text = ""
        for entry in entries:
            text += "[[mutant]]\n"
            text += "".join(f"{key} = {value!r}\n" for key, value in {**defaults, **entry}.items() if value is not None)
        self.write("tests/mutants/base.toml", text)

    def planted(self, *entries):
        self.list_of(*entries)
        listed = mutants.read_list(self.root)
        mutants.check(self.root, listed)
        return mutants.plant(SOURCE, listed), [one["number"] for one in listed]

    def refused(self, *entries):
        self.list_of(*entries)
        done = subprocess.run([ROOT / "scripts/mutants", "--check", self.root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_an_expression(self):
        text, [number] = self.planted({"line": "if (count >= 10)", "old": "count >= 10", "new": "count > 10"})
        self.assertIn(f"if ((slalom_mutant({number}) ? (count > 10) : (count >= 10))) return 10;\n", text)
        self.assertTrue(text.startswith('#include "mutant.h"\n#line 1\nint limit(int count) {\n'))

    def test_a_statement(self):
        text, [number] = self.planted({})
        self.assertIn(f"  {{ if (slalom_mutant({number})) {{  }} else {{ flush(); }} }}\n", text)

    def test_two_faults_in_one_place(self):
        line = {"line": "if (count >= 10)", "old": "count >= 10"}
        text, [one, two] = self.planted({**line, "name": "a", "new": "true"}, {**line, "name": "b", "new": "false"})
        self.assertIn(f"if ((slalom_mutant({one}) ? (true) : slalom_mutant({two}) ? (false) : (count >= 10)))", text)

    def test_a_new_fault_leaves_the_numbers_of_others(self):
        _, [alone] = self.planted({"name": "b"})
        _, [_, second] = self.planted({"name": "a", "line": "return count;", "new": "return 0;"}, {"name": "b"})
        self.assertEqual(alone, second)

    def test_what_does_not_fit(self):
        self.assertIn("has 2 lines with 'return'", self.refused({"line": "return"}))
        self.assertIn("has 0 lines with 'sync();'", self.refused({"line": "sync();"}))
        self.assertIn("there is no file src/base/gone.cc", self.refused({"file": "src/base/gone.cc"}))
        self.assertIn("overlaps another fault", self.refused({"name": "a", "line": "return count;"},
                                                             {"name": "b", "line": "return count;", "old": "count", "new": "0"}))
        self.assertIn("'10' is not in `line` exactly once", self.refused({"line": "if (count >= 10) return 10;", "old": "10"}))
        self.assertIn("named twice", self.refused({}, {}))
        self.assertIn("missing keys ['tests']", self.refused({"tests": None}))
        self.assertIn("unknown keys ['test']", self.refused({"test": "x"}))
        self.assertIn("no test must notice it, and no explanation says why", self.refused({"tests": []}))

    def test_tests_must_exist(self):
        for name in ("base.Limit.Holds", "base.L*.Holds", "base.Limits.*", "base.*Limits*", "run.test_limits",
                     "run.test_limits:Limits.test_them"):
            self.planted({"tests": [name]})
        for name in ("base.Limit.Breaks", "trace.Limit.Holds", "run.test_limit", "run.test_limits:Limits.test_us"):
            self.assertIn(f"there is no test {name}", self.refused({"tests": [name]}))


class Resuming(unittest.TestCase):
    FILES = {
        "src/base/limit.cc": SOURCE,
        "docs/limits.md": "text",
        "tests/mutants/base.toml": "",
        "tests/run/support.py": "",
        "tests/run/test_limits.py": "one",
        "tests/run/test_others.py": "another",
        "tests/unit/base/limit_test.cc": "TEST(Limit, Holds) {}",
        "tests/unit/trace/other_test.cc": "",
    }

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        for name, text in self.FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def results(self):
        return mutants.Results(self.root, sorted(self.FILES), self.root / "results.json")

    def invalidated_by(self, test):
        """Files of which a change makes the test's results worthless."""
        found = set()
        for name, text in self.FILES.items():
            before = self.results().key([test])
            self.write(name, text + "changed")
            if self.results().key([test]) != before:
                found.add(name)
            self.write(name, text)
        return found

    def test_what_a_result_depends_on(self):
        self.assertEqual(self.invalidated_by("run.test_limits:Limits.test_them"),
                         {"src/base/limit.cc", "tests/run/support.py", "tests/run/test_limits.py"})
        self.assertEqual(self.invalidated_by("base.Limit.*"), {"src/base/limit.cc", "tests/unit/base/limit_test.cc"})
        keys = {self.results().key([test], *fault)
                for test in ("base.Limit.*", "base.Limit.Holds") for fault in ((), ("true",), ("false",))}
        self.assertEqual(len(keys), 6)

    def session(self, resume):
        return mutants.Session(self.root, self.results(), resume, 2)

    def ran(self, resume, names, failing=()):
        """Which of these tests were run, and not taken from an earlier run."""
        made = []

        def make(name):
            made.append(name)
            return {"failure": "it fails" if name in failing else ""}

        done = list(self.session(resume).run_all(names, lambda name: self.results().key([name]), make))
        self.assertEqual(sorted(name for name, _, _ in done), sorted(names))
        return sorted(made)

    def test_a_run_that_was_interrupted_goes_on(self):
        names = ["base.Limit.*", "run.test_limits", "trace.Other.*"]
        self.assertEqual(self.ran(True, names[:2]), names[:2])
        self.assertEqual(self.ran(True, names), names[2:])
        self.assertEqual(self.ran(True, names), [])
        self.assertEqual(self.ran(False, names), names)
        self.write("tests/run/test_limits.py", "changed")
        self.assertEqual(self.ran(True, names, failing=["run.test_limits"]), ["run.test_limits"])
        self.assertEqual(self.ran(True, names), ["run.test_limits"])  # what has failed without any fault is tried again

    def test_the_time_left_is_what_the_rest_took_before(self):
        results = self.results()
        for name, seconds in (("a", 30), ("b", 600), ("c", 30)):
            results.put(name, "key", seconds=seconds)
        progress = mutants.Progress(["a", "b", "c"], results)
        progress.start -= 60  # slower than before: a took twice its time
        self.assertEqual(progress.done("a"), "[  1/3,  21 min left]")
        self.assertEqual(progress.done("b")[:6], "[  2/3")

    def test_the_part_that_failed_is_named(self):
        python = "F\n======\nFAIL: test_them (__main__.Limits.test_them)\n------\nTraceback"
        gtest = "limit_test.cc:3: Failure\n[  FAILED  ] Limit.Holds (0 ms)\n"
        self.assertEqual(mutants.failed_part(python), "Limits.test_them")
        self.assertEqual(mutants.failed_part(gtest), "Limit.Holds")
        self.assertEqual(mutants.failed_part("Segmentation fault"), "")


if __name__ == "__main__":
    unittest.main()
