"""An output is written to the path that the user gives, whatever is there. Only regular files are replaced."""

import os
import stat
import subprocess
import threading
import unittest
import xml.etree.ElementTree as xml

from support import FIXED, SLALOM, Case, environment


class Outputs(Case):
    def writes(self):
        """The commands that write a file, as functions of its path."""
        capsule = self.capsule()
        return (lambda path: self.expect(0, "explore", FIXED, "--junit", path),
                lambda path: self.expect(0, "explore", FIXED, "--save-trace", path),
                lambda path: self.expect(1, "replay", capsule, "--save-trace", path))

    def test_links_stay(self):
        for write in self.writes():
            target, link = self.directory / "target", self.directory / "link"
            (self.directory / "folder").mkdir(exist_ok=True)
            for text in ("../target", str(target)):  # first a regular file, then no file: a dangling link
                for dangling in (False, True):
                    link = self.directory / "folder/link"
                    link.unlink(missing_ok=True)
                    link.symlink_to(text)
                    target.write_text("old") if not dangling else target.unlink(missing_ok=True)
                    write("folder/link")
                    self.assertTrue(link.is_symlink())
                    self.assertFalse(target.is_symlink())
                    self.assertGreater(target.stat().st_size, 100)
            self.assertEqual(sorted(path.name for path in link.parent.iterdir()), ["link"])

    def test_devices_stay(self):
        # Never uses the system's own device, because an error in slalom would replace it.
        device = self.directory / "null"
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            device.write_bytes(b"")
        except OSError:
            return  # only root may make devices; the FIFO below goes the same way
        before = os.stat(device)
        (self.directory / "link").symlink_to("null")
        for write in self.writes():
            for path in ("null", "link"):
                write(path)
                self.assertEqual((os.stat(device).st_ino, os.stat(device).st_rdev), (before.st_ino, before.st_rdev))
            self.assertEqual(os.readlink(self.directory / "link"), "null")
            self.assertEqual(list(self.directory.glob("*.tmp-*")), [])

    def test_a_fifo_is_read_at_its_other_end(self):
        os.mkfifo(self.directory / "fifo")
        for write in self.writes():
            got = []
            reader = threading.Thread(target=lambda: got.append((self.directory / "fifo").read_bytes()))
            reader.start()
            write("fifo")
            reader.join(60)
            self.assertGreater(len(got[0]), 100)
            self.assertTrue(stat.S_ISFIFO((self.directory / "fifo").stat().st_mode))

    def test_standard_output(self):
        (self.directory / "stdout").symlink_to("/proc/self/fd/1")  # like /dev/stdout, which an error would replace
        done = self.expect(0, "explore", FIXED, "--junit", "stdout")
        report, results = done.stdout.split("<?xml", 1)
        self.assertIn("exhausted", report)
        xml.fromstring(results.split("?>", 1)[1])
        # Output to a regular file that the shell has opened continues at its position.
        with open(self.directory / "all", "wb") as file:
            subprocess.run([SLALOM, "explore", FIXED, "--junit", "stdout"], cwd=self.directory, env=environment(), stdout=file, check=True)
            file.write(b"end")
        written = (self.directory / "all").read_text(encoding="utf-8")
        self.assertRegex(written, r"(?s)^.*exhausted.*<\?xml.*</testsuites>\nend$")

    def test_a_folder_is_refused(self):
        (self.directory / "folder").mkdir()
        (self.directory / "link").symlink_to("folder")
        for path in ("folder", "link"):
            done = self.expect(2, "explore", FIXED, "--junit", path)
            self.assertIn(f"cannot write {path}: it is a directory; name a file in it", done.stderr)
        (self.directory / "circle").symlink_to("circle")
        self.assertIn("cannot write circle: Too many levels of symbolic links", self.expect(2, "explore", FIXED, "--junit", "circle").stderr)


if __name__ == "__main__":
    unittest.main()
