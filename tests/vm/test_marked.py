"""Races of a module whose source is available: which sides are marked (READ_ONCE and so on), and which are plain."""

import json
import shutil
import subprocess
import unittest
from pathlib import Path

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, SLALOM, Guest, cached_kernels

TEST = """
name = "marked"
kernel = "debian:6.1"
modules = ["./marked.ko"]
[[flow]]
name = "setter"
calls = '''
fd = open("/dev/marked", O_RDWR)
ioctl(fd, 0x5301, 7)
'''
[[flow]]
name = "getter"
calls = '''
fd = open("/dev/marked", O_RDWR)
ioctl(fd, 0x5302, 0)
'''
"""


class Marked(Guest):
    def build(self):
        known = subprocess.run([SLALOM, "kernel", "get", KERNEL, "--headers", "--json"], capture_output=True, text=True, check=False)
        headers = json.loads(known.stdout).get("headers") if known.returncode == 0 else None
        if not headers or not shutil.which("make"):
            self.skipTest("the kernel's headers are not there: scripts/build-modules fetches them")
        shutil.copy(Path(__file__).parent / "marked.c", self.directory)
        (self.directory / "Kbuild").write_text("obj-m += marked.o\n")
        subprocess.run(["make", "-s", "-C", headers, f"M={self.directory}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"], check=True,
                       capture_output=True, timeout=DEADLINE)
        (self.directory / "test.toml").write_text(TEST)

    def races(self):
        done = subprocess.run([SLALOM, "explore", "test.toml", "--schedules", "60", "--workers", "1", "--out", "", "--no-shrink",
                               "--detectors", "kernel-race", "--json"], cwd=self.directory, capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)  # races of kernels do not fail the command
        return {found["title"]: found for found in json.loads(done.stdout)["findings"] if "marked:" in found["title"]}

    def test_the_source_tells(self):
        self.build()
        races = self.races()
        self.assertEqual(sorted(races), ["data race: marked:get_forgotten / marked:set_forgotten",
                                         "data race: marked:get_known / marked:set_known"])
        half, both = (races[title] for title in sorted(races))
        self.assertEqual((half["severity"], both["severity"]), ("race", "suspicion"))
        self.assertRegex(half["detail"], r"marked:set_forgotten\S* \(store of 4 bytes, plain, value 0x7\)")
        self.assertRegex(half["detail"], r"marked:get_forgotten\S* \(load of 4 bytes, marked, ")
        self.assertRegex(both["detail"], r"\(store of 4 bytes, marked, .*\(load of 4 bytes, marked, |"
                                         r"\(load of 4 bytes, marked, .*\(store of 4 bytes, marked, ")
        # The same module without its source.
        (self.directory / "marked.c").unlink()
        races = self.races()
        self.assertEqual({found["severity"] for found in races.values()}, {"race"})
        self.assertTrue(all("unknown without their source" in found["detail"] for found in races.values()))


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        print(f"{KERNEL} is not in the cache: scripts/fetch-kernel fetches it")
        raise SystemExit(NOTHING_TO_DO)
    unittest.main()
