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


if __name__ == "__main__":
    unittest.main()
