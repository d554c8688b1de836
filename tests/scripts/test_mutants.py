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
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
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


if __name__ == "__main__":
    unittest.main()
