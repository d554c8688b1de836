"""What scripts/fresh refuses. Running it takes half an hour: it is for whoever changes what a new machine needs."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Fresh(unittest.TestCase):
    def fresh(self, *arguments, uid=0, tools=("debootstrap", "unshare")):
        with tempfile.TemporaryDirectory() as scratch:
            # A new machine may have no git, and nothing here comes as far as to clone.
            for name, script in (("id", f"echo {uid}"), ("git", "exit 0"), *((tool, "exit 99") for tool in tools)):
                path = Path(scratch) / name
                path.write_text(f"#!/bin/sh\n{script}\n")
                path.chmod(0o755)
            for tool in ("dirname", "ls", "sed", "mkdir"):
                (Path(scratch) / tool).symlink_to(next(Path(folder) / tool for folder in os.environ["PATH"].split(":")
                                                       if (Path(folder) / tool).exists()))
            environment = {"PATH": scratch, "SLALOM_FRESH_INSIDE": "1"}
            return subprocess.run(["/bin/sh", ROOT / "scripts/fresh", *arguments], capture_output=True, text=True, env=environment, check=False)

    def test_others_than_root_are_told_to_be_root(self):
        done = self.fresh(uid=1000)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("sudo scripts/fresh", done.stderr)

    def test_a_missing_tool_is_named(self):
        done = self.fresh(tools=["unshare"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt-get install debootstrap", done.stderr)

    def test_a_folder_in_use_is_refused(self):
        done = self.fresh(str(ROOT))
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not empty", done.stderr)

    def test_help_prints_the_usage(self):
        done = self.fresh("--help")
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: scripts/fresh [DIRECTORY]", done.stderr)


if __name__ == "__main__":
    unittest.main()
