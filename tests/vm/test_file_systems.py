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
# Where each keeps what its checker cannot do without, in blocks of 1,024 bytes.
DAMAGE = {"ext4": "seek=2 count=2", "btrfs": "seek=64 count=64", "xfs": "count=4", "vfat": "count=64"}


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def explore(test, schedules):
    done = slalom("explore", test, "--schedules", schedules, "--workers", 1, "--out", "", "--no-shrink", "--json",
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

    def check(self, name):
        done = slalom("new", "fs-test", self.test, "--fs", name, "--seed", 3, "--calls", 6)
        if "apt-get install" in done.stderr:
            print(done.stderr)
            sys.exit(77)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Nothing is wrong after generated calls.
        done = explore(self.test, 4)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(json.loads(done.stdout)["executions"], 4)
        # Damage is reported.
        text = self.test.read_text()
        self.assertIn("umount /mnt && ", text)
        damage = f"dd if=/dev/zero of=/dev/ram0 bs=1024 {DAMAGE[name]}"
        self.test.write_text(text.replace("umount /mnt && ", f"umount /mnt && {damage} && "))
        done = explore(self.test, 1)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the check failed with status", json.loads(done.stdout)["findings"][0]["title"])

    def test_ext4(self):
        self.check("ext4")

    def test_btrfs(self):
        self.check("btrfs")

    def test_xfs(self):
        self.check("xfs")

    def test_vfat(self):
        self.check("vfat")

    def test_another_file_system_is_refused(self):
        done = slalom("new", "fs-test", self.test, "--fs", "zfs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ext4, btrfs, xfs, vfat", done.stderr)


if __name__ == "__main__":
    unittest.main()
