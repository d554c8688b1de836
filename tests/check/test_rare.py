"""Bugs that need many preemptions (examples/check/rare): a bounded search proves how many, finds them with that many, and
finds nothing in the fixed twins. How fast the default strategy finds them is measured by bench/rare_bugs.

SLALOM_BUILD: the build directory.
"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["SLALOM_BUILD"])


class Rare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build(self, name, *flags):
        program = Path(self.folder.name) / "-".join([name, *flags])
        compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
        subprocess.run([*compiler, "-g", "-O1", "-std=c++20", "-fsanitize=thread", *flags, f"-I{ROOT / 'include'}", "-c",
                        ROOT / "examples/check/rare" / f"{name}.cc", "-o", f"{program}.o"], check=True)
        subprocess.run(["g++", f"{program}.o", f"-L{BUILD}", "-lslalom_check", f"-Wl,-rpath,{BUILD}", "-o", program], check=True)
        return program

    def search(self, program, strategy, **limits):
        settings = {"SLALOM_STRATEGY": strategy, "SLALOM_FINDINGS": ""}
        settings |= {f"SLALOM_{name.upper()}": str(value) for name, value in limits.items()}
        done = subprocess.run([program], capture_output=True, text=True, timeout=250, env=dict(os.environ, **settings))
        return done.returncode, done.stdout

    def proves(self, name, preemptions):
        code, output = self.search(self.build(name), f"dfs:limit={preemptions - 1},cache")
        self.assertEqual(code, 0, output)
        self.assertIn(f"exhausted: every schedule with at most {preemptions - 1} preemptions was executed", output)

    def test_node_stack_needs_four(self):
        self.proves("node_stack", 4)
        code, output = self.search(Path(self.folder.name) / "node_stack", "dfs:limit=4,cache")
        self.assertEqual(code, 1, output)
        self.assertIn("two threads own the same node", output)
        self.assertIn("  4 preemptions; ", output)

    def test_stealing_deque_needs_five(self):
        self.proves("stealing_deque", 5)

    def test_nothing_in_the_twins(self):
        for name in ("node_stack", "stealing_deque", "buffer_pool"):
            code, output = self.search(self.build(name, "-DFIXED"), "portfolio", schedules=2_000)
            self.assertEqual(code, 0, output)
            self.assertIn("nothing found", output)


if __name__ == "__main__":
    unittest.main()
