"""scripts/check-skips on the results of a real ctest run, of tests that this file makes."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYTHON_TEST = """
import sys
import unittest
print("much output before it" * 1000, file=sys.stderr)  # ctest mixes two streams as it likes
class Some(unittest.TestCase):
    def test_runs(self): pass
    @unittest.skip("a tool is missing")
    def test_skipped(self): pass
    @unittest.skip("a tool is missing")
    def test_documented(self):
        '''Has a docstring, which unittest prints.'''
if __name__ == "__main__":
    unittest.main()
"""

# What GoogleTest prints.
GOOGLE_TEST = """[ RUN      ] Kernels/Boot.Works/5_10
[  SKIPPED ] Kernels/Boot.Works/5_10 (3 ms)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Kernels/Boot.Works/5_10
"""


class CheckSkips(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        (cls.root / "scripts").mkdir()
        (cls.root / "tests").mkdir()
        shutil.copy(ROOT / "scripts/check-skips", cls.root / "scripts")
        (cls.root / "python.py").write_text(PYTHON_TEST)
        (cls.root / "google.txt").write_text(GOOGLE_TEST)
        (cls.root / "CTestTestfile.cmake").write_text(
            f'add_test(python "{sys.executable}" "{cls.root}/python.py" -v)\n'
            f'add_test(google cat "{cls.root}/google.txt")\n'
            'add_test(folder.Suite.Case echo "[  SKIPPED ] Suite.Case (0 ms)")\n'
            'add_test(nothing_to_do sh -c "exit 77")\n'
            "set_tests_properties(nothing_to_do PROPERTIES SKIP_RETURN_CODE 77)\n"
            'add_test(runs echo "none were skipped")\n')
        subprocess.run(["ctest", "--output-junit", cls.root / "tests.xml", "--test-output-size-passed", "10000000"],
                       cwd=cls.root, capture_output=True, check=True)

    def check(self, allowed, ci):
        (self.root / "tests/may-skip.txt").write_text(allowed)
        environment = {**os.environ, "CI": "true" if ci else ""}
        return subprocess.run([self.root / "scripts/check-skips", self.root / "tests.xml"], capture_output=True, text=True, env=environment, check=False)

    ALL = ["python Some.test_documented", "python Some.test_skipped", "google Kernels/Boot.Works/5_10", "folder.Suite.Case", "nothing_to_do"]

    def test_outside_ci_every_skipped_test_is_listed(self):
        done = self.check("", ci=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), [f"skipped: {name}: tests/may-skip.txt gives no reason" for name in self.ALL])

    def test_in_ci_each_needs_a_reason(self):
        reasons = [f"{name}: because" for name in self.ALL]
        done = self.check("# a comment\n\n" + "\n".join(reasons), ci=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), [f"skipped: {name}: because" for name in self.ALL])
        for missing in range(len(reasons)):
            done = self.check("\n".join(reasons[:missing] + reasons[missing + 1:]), ci=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("1 of the tests above may not be skipped", done.stderr)
            self.assertIn(f"skipped: {self.ALL[missing]}: tests/may-skip.txt gives no reason", done.stdout)

    def test_a_reason_may_be_for_several(self):
        self.assertEqual(self.check("python *: x\ngoogle Kernels/*/5_10: x\nfolder.*: x\nnothing_to_do: x\n", ci=True).returncode, 0)

    def test_a_line_without_a_reason_is_an_error(self):
        done = self.check("nothing_to_do:\n", ci=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tests/may-skip.txt:1: 'nothing_to_do:' gives no reason", done.stderr)

    def test_without_results_it_says_what_to_do(self):
        done = subprocess.run([self.root / "scripts/check-skips", "gone.xml"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot read gone.xml: ", done.stderr)
        self.assertIn("run ctest with --output-junit gone.xml", done.stderr)


if __name__ == "__main__":
    unittest.main()
