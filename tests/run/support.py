"""What the tests of slalom run share: building small programs and running slalom on them.

The command is named by the environment variable SLALOM.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SLALOM = os.path.abspath(os.environ["SLALOM"])


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def build(self, text, name="prog", suffix=".c", flags=()):
        source = self.folder / (name + suffix)
        source.write_text(text)
        compiler = ["gcc", "-std=c11", "-D_GNU_SOURCE"] if suffix == ".c" else ["g++", "-std=c++20"]
        subprocess.run([*compiler, "-g", "-O1", "-pthread", *flags, source, "-o", self.folder / name], check=True)
        return self.folder / name

    def slalom(self, *arguments, codes=(0, 1)):
        done = subprocess.run([SLALOM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=100)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        return done

    def run_json(self, program, *arguments):
        return json.loads(self.slalom("run", "--json", *arguments, "--", program).stdout)
