"""Shared by the tests with real kernels: boots a kernel with the command, and returns its output.

The command is named by the environment variable SLALOM.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLALOM = os.path.abspath(os.environ.get("SLALOM", ROOT / "build/slalom"))
DEADLINE = 500  # seconds after which a guest counts as hanging
NOTHING_TO_DO = 77  # CMakeLists.txt
KERNEL = "debian:6.1"


def cached_kernels():
    listed = subprocess.run([SLALOM, "kernel", "list", "--json"], capture_output=True, text=True, check=True)
    return [kernel["name"] for kernel in json.loads(listed.stdout) if kernel.get("fetched")]


class Guest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="slalom-vm-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)

    def boot(self, *arguments, command=SLALOM, code=0):
        """The output of `slalom boot --json` for a guest that ends by itself or at its --limit."""
        done = subprocess.run([command, "boot", *map(str, arguments), "--json"], cwd=self.directory, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout[-2000:])
        return json.loads(done.stdout)

    def lines(self, result):
        """The output of programs: the console without the kernel's own lines."""
        self.assertEqual(result["stop"], "power-off", result["console"])
        return [line for line in result["console"].replace("\r", "").split("\n") if line and not line.startswith("[")]


def main():
    if KERNEL not in cached_kernels():
        print(f"{KERNEL} is not in the cache: scripts/fetch-kernel fetches it")
        sys.exit(NOTHING_TO_DO)
    unittest.main()
