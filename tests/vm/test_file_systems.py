"""slalom new fs-test: after generated calls the file system's checker finds no errors, and damage is reported."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLALOM = os.environ.get("SLALOM", str(ROOT / "build" / "slalom"))
# Where each file system keeps data that its checker needs, in blocks of 1,024 bytes.
DAMAGE = {"ext4": "seek=2 count=2", "btrfs": "seek=64 count=64", "xfs": "count=4", "vfat": "count=64"}


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def explore(test, schedules, *more, out=""):
    done = slalom("explore", test, "--schedules", schedules, "--workers", 1, "--out", out, "--no-shrink", "--json",
                  "--detectors", "console,deadlock,failure", *more)
    if done.returncode == 2 and "slalom kernel get" in done.stderr:
        print(done.stderr)
        sys.exit(77)
    return done


class FileSystems(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.test = pathlib.Path(self.scratch.name) / "t.toml"

    def write_test(self, name, *more):
        self.test.unlink(missing_ok=True)
        done = slalom("new", "fs-test", self.test, "--fs", name, "--seed", 3, *more)
        if "apt-get install" in done.stderr:
            print(done.stderr)
            sys.exit(77)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check(self, name, *more, disk="/dev/ram0", how=()):
        self.write_test(name, *(more or ("--calls", 6)))
        # The checker finds nothing after generated calls.
        done = explore(self.test, 4, *how)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["executions"], result["diverged"], result["trouble"]), (4, 0, []))
        # Damage is reported. So many calls have too many serial orders to try, which has nothing to do with damage.
        self.write_test(name, *(more or ("--calls", 9)))
        text = self.test.read_text()
        self.assertIn("umount /mnt && ", text)
        damage = f"dd if=/dev/zero of={disk} bs=1024 {DAMAGE[name]}"
        self.test.write_text(text.replace("umount /mnt && ", f"umount /mnt && {damage} && "))
        done = explore(self.test, 1, out=self.scratch.name)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found = json.loads(done.stdout)["findings"][0]
        self.assertIn("the check failed with status", found["title"])
        # Another process reaches the same state.
        again = slalom("replay", found["capsule"])
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn("the same again; same state hash 0x", again.stdout)
        return found["capsule"]

    def check_on_loop(self, name):
        # So many calls that their serial orders are not tried.
        return self.check(name, "--disk", "loop", "--calls", 9, disk="/dev/loop0", how=["--run-twice"])

    def test_ext4(self):
        self.check("ext4")

    def test_btrfs(self):
        self.check("btrfs")

    def test_xfs(self):
        self.check("xfs")

    def test_vfat(self):
        self.check("vfat")

    def test_ext4_on_a_loop_device(self):
        capsule = self.check_on_loop("ext4")
        # The disk's work is done on a CPU without a flow, by a context that the search decides about.
        with subprocess.Popen([SLALOM, "replay", capsule, "--trace"], stdout=subprocess.PIPE, text=True) as replay:
            works = {line.split()[1] for line in replay.stdout if " call " in line and " loop:loop_rootcg_workfn" in line}
        self.assertEqual(works, {"cpu2"})

    def test_btrfs_on_a_loop_device(self):
        self.check_on_loop("btrfs")

    def test_another_file_system_is_refused(self):
        done = slalom("new", "fs-test", self.test, "--fs", "zfs")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ext4, btrfs, xfs, vfat", done.stderr)
        done = slalom("new", "fs-test", self.test, "--disk", "floppy")
        self.assertEqual(done.returncode, 2)
        self.assertIn('is ram or loop, not "floppy"', done.stderr)


if __name__ == "__main__":
    unittest.main()
