"""A kernel of one's own finds its modules, and a program of the user replaces one of busybox's. The kernels here are copies of
debian:6.1."""

import json
import shutil
import subprocess

from guest import KERNEL, SLALOM, Guest, main


def cached(kernel):
    listed = subprocess.run([SLALOM, "kernel", "list", "--json"], capture_output=True, text=True, check=True)
    return next(one for one in json.loads(listed.stdout) if one["name"] == kernel)


class OwnKernel(Guest):
    def setUp(self):
        super().setUp()
        self.debian = cached(KERNEL)
        self.own = self.directory / "my kernel"
        self.own.mkdir()
        shutil.copy(self.debian["vmlinuz"], self.own / "vmlinuz")

    def slalom(self, code, *arguments):
        done = subprocess.run([SLALOM, *map(str, arguments)], cwd=self.directory, capture_output=True, stdin=subprocess.DEVNULL,
                              text=True, timeout=500, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_modules_beside_it_with_parameters(self):
        modules = self.own / "lib/modules"
        modules.mkdir(parents=True)
        (modules / self.debian["release"]).symlink_to(self.debian["modules"])
        said = self.lines(self.boot("--kernel", self.own / "vmlinuz", "--module", "brd rd_nr=3", "--module", "btrfs",
                                    "--module", "8250 nr_uarts=2", "--run",
                                    "echo /dev/ram*; grep -c ^raid6_pq /proc/modules; cat /sys/module/8250/parameters/nr_uarts"))
        self.assertEqual(said, ["/dev/ram0 /dev/ram1 /dev/ram2", "1", "2"])

    def test_without_modules_it_says_where_they_were_looked_for(self):
        done = self.slalom(2, "boot", "--kernel", self.own / "vmlinuz", "--module", "brd")
        self.assertIn(f"no /lib/modules/{self.debian['release']}; give --modules DIR", done.stderr)
        done = self.slalom(2, "boot", "--kernel", self.own / "vmlinuz", "--module", "brd", "--modules", self.own)
        self.assertIn("there are no modules in ", done.stderr)
        done = self.slalom(2, "boot", "--kernel", KERNEL, "--modules", self.own)
        self.assertIn(f"{KERNEL} comes with modules of its own", done.stderr)


class Commands(Guest):
    def test_a_program_of_the_user_wins_over_busyboxs(self):
        script = self.directory / "mine"
        script.write_text("#!/bin/sh\necho mine $1\n", encoding="utf-8")
        script.chmod(0o755)
        said = self.lines(self.boot("--file", "mine:/usr/bin/uname", "--file", "mine:/bin/ip", "--run",
                                    "uname -s; ip link; sh -c 'uname -r'; hostname -s; busybox uname -s"))
        self.assertEqual(said, ["mine -s", "mine link", "mine -r", "(none)", "Linux"])


if __name__ == "__main__":
    main()
