"""Programs that nobody here wrote, as Debian ships them: they run to their end under many schedules, and do their work."""

import json
import os
import shutil
import subprocess
import unittest

from support import ProgramTest

# What is to be run, how its result is turned into the input again, and how many choice points an execution has at least.
PROGRAMS = {
    "xz": (["xz", "-T2", "--block-size=64KiB", "-k", "-f", "input"], ["xz", "-dc", "input.xz"], 50),
    "zstd": (["zstd", "-q", "-T2", "-B512K", "-f", "input"], ["zstd", "-q", "-dc", "input.zst"], 50),
    "pigz": (["pigz", "-p", "2", "-b", "128", "-k", "-f", "input"], ["gzip", "-dc", "input.gz"], 50),
    "pbzip2": (["pbzip2", "-p2", "-b1", "-k", "-f", "-q", "input"], ["bzip2", "-dc", "input.bz2"], 50),
    "sort": (["sort", "--parallel=2", "-n", "input", "-o", "sorted"], ["cat", "sorted"], 5),
}
SCHEDULES = int(os.environ.get("SLALOM_SCHEDULES", "12"))


class RealPrograms(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = b"".join(b"%d\n" % i for i in range(300_000))

    def test_programs(self):
        tested = 0
        for name, (command, undo, points) in PROGRAMS.items():
            if shutil.which(name) is None:
                continue
            with self.subTest(name):
                (self.folder / "input").write_bytes(self.text)
                found = self.run_command(command)
                self.assertEqual([finding["title"] for finding in found["findings"]], [])
                self.assertEqual(found["trouble"], [])
                self.assertEqual(found["executions"], SCHEDULES)
                self.assertGreaterEqual(found["choice_points"] / SCHEDULES, points)
                done = subprocess.run(undo, cwd=self.folder, capture_output=True, check=True)
                self.assertTrue(done.stdout == self.text, f"{name} did its work wrongly")
                tested += 1
        self.assertGreater(tested, 0, "none of the programs is installed")

    def run_command(self, command):
        done = self.slalom("run", "--json", "--out", "", "--strategy", "random", "--schedules", SCHEDULES, "--patience", "30",
                           "--timeouts", "idle", "--workers", "1", "--max-steps", "1000000", "--", *command)
        return json.loads(done.stdout)


if __name__ == "__main__":
    unittest.main()
