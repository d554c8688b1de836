"""A dynamically linked program of the host prints the same in the guest: floating point, libm, threads."""

import os
import subprocess
from pathlib import Path

from guest import Guest, main

SOURCE = Path(__file__).with_name("program.c")


class Programs(Guest):
    def test_a_glibc_program_prints_what_it_prints_here(self):
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O1", "-o", "program", SOURCE, "-lm", "-lpthread"], cwd=self.directory, check=True)
        here = subprocess.run([self.directory / "program"], capture_output=True, text=True, check=True).stdout.split("\n")
        there = self.lines(self.boot("--cpus", 2, "--file", "program:/bin/program", "--run", "program"))
        self.assertGreater(len(here), 15)
        self.assertEqual(there, [line for line in here if line])


if __name__ == "__main__":
    main()
