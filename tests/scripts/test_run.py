"""The parts of ./run that need no build."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["demo", "build", "test", "presubmit", "bench", "format"]


def run(root, *arguments):
    environment = {**os.environ, "SLALOM_NO_BOOTSTRAP": "1"}
    return subprocess.run([root / "run", *arguments], capture_output=True, text=True, env=environment, cwd="/")


class Run(unittest.TestCase):
    def test_the_tour_names_every_command(self):
        for arguments in ([], ["--help"], ["-h"], ["help"]):
            tour = run(ROOT, *arguments)
            self.assertEqual((tour.returncode, tour.stderr), (0, ""))
            self.assertEqual(re.findall(r"^  \./run (\w+)", tour.stdout, re.M), COMMANDS)

    def test_unknown_words_are_usage_errors(self):
        for arguments in (["tset"], ["format", "--chek"]):
            wrong = run(ROOT, *arguments)
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
            self.assertIn(arguments[-1], wrong.stderr)

    def test_format_checks_then_repairs_all_but_build_trees(self):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "scripts").mkdir()
            shutil.copy(ROOT / "run", root)
            shutil.copy(ROOT / "scripts/bootstrap", root / "scripts")
            shutil.copy(ROOT / ".clang-format", root)
            ugly = "int   x ;\n"
            sources = [root / name for name in ("src/a.cc", "src/builder/b.h", "tests/a space.cc", "examples/c.c")]
            generated = root / "build-asan/generated.h"
            for path in sources + [generated]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(ugly)

            check = run(root, "format", "--check")
            self.assertNotEqual(check.returncode, 0)
            for path in sources:
                self.assertIn(path.name, check.stderr)
                self.assertEqual(path.read_text(), ugly)
            self.assertNotIn("generated.h", check.stderr)

            self.assertEqual(run(root, "format").returncode, 0)
            self.assertEqual([path.read_text() for path in sources], ["int x;\n"] * len(sources))
            self.assertEqual(generated.read_text(), ugly)
            self.assertEqual(run(root, "format", "--check").returncode, 0)

    def run_test(self, ctest="exit 0", skips="exit 0", ci="true"):
        """Runs ./run test where cmake, ctest and all scripts only print what they are called with; `ctest` and `skips` are
        shell code for the release tests and for scripts/check-skips."""
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        root = Path(scratch.name)
        shutil.copy(ROOT / "run", root)
        tools = {"bin/cmake": "", "bin/ctest": f'case "$*" in *release*junit*) {ctest} ;; *"-C skips"*) exit 8 ;; esac',
                 "scripts/check-skips": skips}
        for name in ("bootstrap", "fetch-kernel", "build-modules"):
            tools[f"scripts/{name}"] = ""
        for name, script in tools.items():
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f'#!/bin/sh\necho "{path.name} $*"\n{script}\n')
            path.chmod(0o755)
        environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "CI": ci}
        return subprocess.run([root / "run", "test"], capture_output=True, text=True, env=environment, check=False)

    def test_the_times_of_all_phases_are_printed(self):
        done = self.run_test(ctest="python3 -c 'while __import__(\"time\").process_time() < 1.2: pass'")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        phases = {line[:24].strip(): (number, line[24:].split()) for number, line in enumerate(lines) if re.search(r"\d+ min \d\d s$", line)}
        self.assertEqual(list(phases), ["release build", "kernel and modules", "sanitized build", "sanitized tests", "release tests"])
        # Only the last phase's time comes behind the last summary of ctest.
        last = max(number for number, line in enumerate(lines) if line.startswith("ctest "))
        self.assertIn("release", lines[last])
        self.assertEqual([name for name, (number, _) in phases.items() if number > last], ["release tests"])
        self.assertEqual(len(lines), phases["release tests"][0] + 1)
        self.assertIn(phases["release tests"][1][-2], ("01", "02", "03"))
        self.assertEqual(phases["sanitized tests"][1][-4:], ["0", "min", "00", "s"])

    def test_a_failure_is_the_exit_code(self):
        done = self.run_test(ctest="exit 8")
        self.assertEqual(done.returncode, 8)
        self.assertIn("check-skips build/tests.xml", done.stdout)
        self.assertIn("release tests", done.stdout.splitlines()[-1])

    def test_a_skipped_test_without_a_reason_is_in_the_last_summary(self):
        done = self.run_test(skips="exit 1")
        self.assertEqual(done.returncode, 1)
        calls = [line for line in done.stdout.splitlines() if line.startswith("ctest ")]
        self.assertIn("-C skips -R ^skips$", calls[-1])
        self.assertNotIn("-C skips", self.run_test().stdout)


if __name__ == "__main__":
    unittest.main()
