"""slalom new fs-test: generated calls leave a file system that its checker finds nothing wrong with, and damage is reported."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLALOM = os.environ.get("SLALOM", str(ROOT / "build" / "slalom"))
CHECK = "e2fsck -fn /dev/ram0"
DAMAGE = "dd if=/dev/zero of=/dev/ram0 bs=1024 seek=2 count=2"  # the group descriptors


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def explore(test):
    done = slalom("explore", test, "--schedules", 6, "--workers", 1, "--out", "", "--no-shrink", "--json",
                  "--detectors", "console,deadlock,failure")
    if done.returncode == 2 and "slalom kernel get" in done.stderr:
        print(done.stderr)
        sys.exit(77)
    return done


class FileSystems(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.test = pathlib.Path(self.scratch.name) / "t.toml"
        done = slalom("new", "fs-test", self.test, "--fs", "ext4", "--seed", 3, "--calls", 6)
        if "apt-get install" in done.stderr:
            print(done.stderr)
            sys.exit(77)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_is_wrong_after_generated_calls(self):
        done = explore(self.test)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["executions"], 6)

    def test_damage_is_reported(self):
        text = self.test.read_text()
        self.assertIn(CHECK, text)
        self.test.write_text(text.replace(CHECK, f"{DAMAGE} && {CHECK}"))
        done = explore(self.test)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the check failed with status", json.loads(done.stdout)["findings"][0]["title"])

    def test_another_file_system_is_refused(self):
        done = slalom("new", "fs-test", self.test.with_name("u.toml"), "--fs", "zfs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ext4, btrfs, xfs, vfat", done.stderr)


if __name__ == "__main__":
    unittest.main()
