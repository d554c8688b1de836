"""Source lines of kernels and modules in reports and traces, compared with the sources."""

import os
import subprocess
import unittest
from pathlib import Path

from guest import DEADLINE, KERNEL, ROOT, SLALOM, Guest, main

MODULE = ROOT / "examples/kernel-modules/torn_read"
# All of the kernel's code as a single line.
ONE_LINE = '__asm__(".text\\n");\nvoid everything(void) {\n  __asm__(".skip 0x1800000, 0x90");\n}\n'
TRACE = ("--kernel", KERNEL, "--append", "nokaslr", "--run", "cat /proc/loadavg", "--trace", "calls:loadavg_proc_show")


class Lines(Guest):
    def run_slalom(self, *arguments):
        return subprocess.run([SLALOM, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=DEADLINE, check=False)

    def vmlinux(self, build_id):
        """A file with the kernel's build id that has one line for all of its code."""
        Path(self.directory, "one_line.c").write_text(ONE_LINE)
        subprocess.run(["gcc", "-g", "-O1", "-ffreestanding", "-fno-pic", "-mcmodel=kernel", "-nostdlib", "-static", "-no-pie",
                        f"-Wl,--build-id=0x{build_id}", "-Wl,-Ttext=0xffffffff81000000", "-Wl,-e,everything", "one_line.c",
                        "-o", "vmlinux"], cwd=self.directory, check=True)

    def test_a_module_has_lines_of_its_own(self):
        source = (MODULE / "torn_read.c").read_text().split("\n")
        copies = [number for number, line in enumerate(source, 1) if "ether_addr_copy(" in line]
        self.assertEqual(len(copies), 2)
        found = self.run_slalom("explore", MODULE / "test.toml", "--seed", 1, "--first", "--no-shrink", "--out", "",
                                "--detectors", "console,deadlock,failure")
        self.assertEqual(found.returncode, 1, found.stderr)
        text = " ".join(found.stdout.replace("|", " ").split())
        for number in copies:
            self.assertIn(f"(torn_read.c:{number} in ether_addr_copy)", text)

    def test_lines_of_headers_in_the_cache_tell_what_is_marked(self):
        found = self.run_slalom("explore", MODULE / "test.toml", "--first", "--no-shrink", "--out", "", "--detectors", "kernel-race",
                                "--fail-on", "race")
        self.assertEqual(found.returncode, 1, found.stderr)
        # ether_addr_copy() is inlined from <linux/etherdevice.h>, which copies without READ_ONCE().
        self.assertRegex(" ".join(found.stdout.split()), r"torn_read:card_read\+0x\w+ \(load of \d bytes, plain, value")

    def test_no_module_has_a_name_of_this_machine_in_it(self):
        """So that the module, and the search for its bugs, is the same wherever it is built."""
        built = subprocess.run([ROOT / "scripts/build-modules", KERNEL], capture_output=True, text=True, check=False,
                               env=dict(os.environ, SLALOM=SLALOM))
        if built.returncode != 0:
            self.skipTest(built.stderr)
        folder = Path(built.stdout.strip())  # below the cache
        modules = sorted(folder.glob("*.ko"))
        self.assertGreater(len(modules), 20)
        for module in modules:
            data = module.read_bytes()
            for name in (ROOT / "examples", folder.parents[1]):
                self.assertNotIn(os.fsencode(name), data, module)

    def test_a_given_vmlinux_names_the_lines_of_the_kernel(self):
        identity = self.boot("--kernel", KERNEL, "--run", "true")["identity"]
        self.assertTrue(identity.startswith("build-id:"), identity)
        self.vmlinux(identity.removeprefix("build-id:"))
        done = self.run_slalom("boot", *TRACE, "--debug-info", "vmlinux")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"loadavg_proc_show\(.*\)  at seq_read_iter\+0x[0-9a-f]+ \(one_line\.c:3\)")

    def test_the_vmlinux_of_another_kernel_is_refused(self):
        self.vmlinux("00" * 20)
        for name in ("vmlinux", "missing"):
            done = self.run_slalom("boot", *TRACE, "--debug-info", name)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("their build ids differ" if name == "vmlinux" else "there is no missing", done.stderr)
        test = (MODULE / "test.toml").read_text().replace('kernel = "debian:6.1"', 'kernel = "debian:6.1"\ndebug_info = "vmlinux"')
        Path(self.directory, "test.toml").write_text(test)
        done = self.run_slalom("explore", "test.toml")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"test\.toml:4: .*their build ids differ")


if __name__ == "__main__":
    main()
