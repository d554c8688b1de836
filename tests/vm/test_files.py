"""Modules load, and a file system created by the host's mkfs keeps its files."""

import hashlib
import shutil

from guest import Guest, main

MODULES = ["brd", "loop", "xfs", "tun", "veth", "l2tp_eth"]

SCRIPT = """
set -e
mkdir -p /mnt
dd if=/dev/zero of=/disk bs=1M count=12 2>/dev/null
losetup /dev/loop0 /disk
for device in /dev/ram0 /dev/loop0; do
  mkfs.ext4 -q -F $device 12M
  mount -t ext4 $device /mnt
  mkdir /mnt/folder
  seq 1 2000 > /mnt/numbers
  cp /mnt/numbers /mnt/folder/copy
  umount /mnt
  mount -t ext4 $device /mnt
  echo $device $(md5sum < /mnt/folder/copy)
  umount /mnt
done
for module in $*; do
  grep -q "^$module " /proc/modules && echo $module
done
grep -q xfs /proc/filesystems && echo knows xfs
"""


class Files(Guest):
    def test_modules_load_and_a_file_system_keeps_its_files(self):
        mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
        self.assertIsNotNone(mkfs, "e2fsprogs is essential in Debian")
        (self.directory / "script").write_text(SCRIPT)
        modules = [part for module in MODULES for part in ("--module", module)]
        said = self.lines(self.boot("--cpus", 2, *modules, "--file", f"{mkfs}:/sbin/mkfs.ext4", "--file", "script:/script",
                                    "--run", "sh /script " + " ".join(MODULES)))
        digest = hashlib.md5("".join(f"{n}\n" for n in range(1, 2001)).encode()).hexdigest()
        self.assertEqual(said, [f"/dev/ram0 {digest} -", f"/dev/loop0 {digest} -", *MODULES, "knows xfs"])


if __name__ == "__main__":
    main()
