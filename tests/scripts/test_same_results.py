"""scripts/same-results reports a search that gives other results, and nothing where the results are the same."""

import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# A command that finds as many executions as its first argument says, in whatever time.
COMMAND = """#!/bin/sh
echo '{{"executions": {executions}, "seconds": '$$'.5, "findings": [{{"title": "race", "capsule": "'$$'"}}]}}'
exit 1
"""


class SameResults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def command(self, name, executions):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(COMMAND.format(executions=executions))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def compare(self, old, new):
        return subprocess.run([ROOT / "scripts/same-results", old, new, "--toys", "--only", "lost-update *"], capture_output=True, text=True,
                              env=os.environ, check=False)

    def test_times_and_paths_are_not_compared(self):
        done = self.compare(self.command("old", 5), self.command("new", 5))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^\d+ searches, 0 with differences\n$")

    def test_another_count_is_a_difference(self):
        done = self.compare(self.command("old", 5), self.command("new", 6))
        self.assertEqual(done.returncode, 1)
        self.assertIn("lost-update --strategy dpor: result.executions: 5 -> 6\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
