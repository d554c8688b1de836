"""slalom boot --trace shows what a program really did, and tracing changes nothing."""

import errno
import os
import re
import subprocess
from pathlib import Path

from guest import KERNEL, SLALOM, Guest, main

SOURCE = Path(__file__).with_name("traced.c")
LINE = re.compile(r" *(\d+) cpu(\d) (\S+) +(\w+) +(.*)")


class Trace(Guest):
    def setUp(self):
        super().setUp()
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-static", "-nostdlib", "-fno-stack-protector", "-fno-builtin",
                        "-o", "traced", SOURCE], cwd=self.directory, check=True)

    def trace(self, filters, *arguments, run="echo begin; traced"):
        """The lines of the console, and those of the trace as (step, cpu, task, kind, rest)."""
        result = self.boot("--file", "traced:/bin/traced", "--run", run, "--trace", filters, "--trace-after", "begin",
                           "--trace-to", "trace.txt", *arguments)
        text = (self.directory / "trace.txt").read_text()
        return self.lines(result), [LINE.fullmatch(line).groups() for line in text.splitlines() if LINE.fullmatch(line)]

    def test_system_calls_are_those_of_the_program(self):
        said, lines = self.trace("syscalls")
        did = [tuple(line.split()[1:]) for line in said if line.startswith("did ")]
        self.assertEqual(len(did), 13)
        seen = []
        for _, _, task, _, rest in lines:
            ended = re.fullmatch(r"(\w+) = (\S+)", rest)
            if task.split("/")[0] in ("traced", "renamed") and ended:
                name, value = ended.groups()
                seen.append((name, str(-getattr(errno, value[1:])) if value.startswith("-E") else value))
        # Before its first call the trace has the end of the execve that started it, and after the last one the printing.
        self.assertEqual(seen[0][0], "execve")
        self.assertEqual(seen[1:14], did)
        self.assertEqual([name for name, _ in seen[14:]], ["write"])
        begun = [rest for _, _, task, _, rest in lines if task.split("/")[0] in ("traced", "renamed") and " = " not in rest]
        self.assertIn('open("/tmp/traced", 0x42, 0o644)'.replace("0o", "0"), begun)
        self.assertIn('write(3, "twelve bytes", 12)', begun)
        self.assertIn("exit_group(0)", begun)
        # Its pid in the trace is the result of getpid, and its name changes when it sets the name.
        tasks = [task for _, _, task, _, rest in lines if rest.startswith("get")]
        self.assertIn(f"traced/{did[0][1]}", tasks)
        self.assertIn(f"renamed/{did[0][1]}", tasks)

    def test_looking_changes_nothing(self):
        arguments = ["--cpus", 2, "--file", "traced:/bin/traced", "--run", "echo begin; traced",
                     "--state-hash-every", 20_000_000]
        plain = self.boot(*arguments)
        seen = self.boot(*arguments, "--trace", "all,stacks,calls:vfs_*,access:jiffies_64", "--trace-after", "begin",
                         "--trace-to", "trace.txt")
        self.assertEqual(seen, plain)
        self.assertGreater((self.directory / "trace.txt").stat().st_size, 100_000)

    def test_a_saved_trace_prints_the_same_lines(self):
        self.trace("all,access:jiffies_64", "--save-trace", "trace.slalom")
        shown = (self.directory / "trace.txt").read_text().splitlines()
        printed = subprocess.run([SLALOM, "trace", "trace.slalom", "--kernel", KERNEL], cwd=self.directory,
                                 capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn("not seen, since this kernel has no function for it", shown[0])
        self.assertEqual(shown[1:], printed)
        self.assertGreater(len(printed), 1000)
        alone = subprocess.run([SLALOM, "trace", "trace.slalom"], cwd=self.directory, capture_output=True, text=True, check=True)
        self.assertEqual(alone.stdout.splitlines(), printed)  # the trace has the names
        for kind in ("lock", "alloc", "free", "syscall", "irq", "switch", "access"):
            self.assertTrue(any(LINE.fullmatch(line)[4] == kind for line in printed if LINE.fullmatch(line)), kind)

    def test_calls_and_accesses(self):
        _, lines = self.trace("calls:ksys_*,calls:vfs_read,access:jiffies_64,stacks")
        calls = [rest for _, _, task, kind, rest in lines if kind == "call" and task.startswith("traced/")]
        self.assertTrue(any(re.match(r"vfs_read\(0x[0-9a-f]+, 0x[0-9a-f]+, 0x40, .*at ksys_read\+", call) for call in calls))
        self.assertIn("vfs_read = 8", calls)  # 12 bytes, from the fourth on
        self.assertIn("ksys_write = 12", calls)
        jiffies = [rest for _, _, _, kind, rest in lines if kind == "access"]
        written = [int(re.search(r"<- (0x[0-9a-f]+)", rest)[1], 16) for rest in jiffies if rest.startswith("write")]
        self.assertEqual(written, list(range(written[0], written[0] + len(written))))
        self.assertTrue(all("jiffies" in rest for rest in jiffies))
        # The clock ticks in an interrupt. Its callers are known up to there.
        text = (self.directory / "trace.txt").read_text()
        ticks = re.findall(r"write 8 bytes of jiffies.*\n((?: +<- .*\n)+)", text)
        self.assertEqual(len(ticks), len(written))
        for callers in ticks:
            self.assertRegex(callers, r"<- tick_\S+\+0x")
            self.assertRegex(callers, r"<- \S*apic_timer_interrupt\+0x")

    def test_functions_of_modules(self):
        _, lines = self.trace("calls:loop:lo_ioctl", "--module", "loop", run="echo begin; losetup /dev/loop0 || true")
        calls = [rest for _, _, task, kind, rest in lines if kind == "call" and task.startswith("losetup/")]
        self.assertRegex(calls[0], r"loop:lo_ioctl\(0x[0-9a-f]+, 0x[0-9a-f]+, 0x4c")
        self.assertEqual(calls[1], "loop:lo_ioctl = -ENXIO")  # no file is attached

    def test_a_saved_machine_can_be_traced(self):
        arguments = ["--file", "traced:/bin/traced", "--run", "traced", "--save", "machine.slalom"]
        self.boot(*arguments, "--limit", 250_000_000)
        self.boot("--load", "machine.slalom", "--trace", "syscalls", "--trace-to", "trace.txt")
        text = (self.directory / "trace.txt").read_text()
        self.assertIn('write(3, "twelve bytes", 12)', text)

    def test_a_panic_is_shown_with_who_called(self):
        result = self.boot("--run", "echo begin; echo c > /proc/sysrq-trigger", "--append", "panic=-1", "--trace",
                           "panic,stacks", "--trace-after", "begin", "--trace-to", "trace.txt", code=1)
        self.assertEqual(result["stop"], "triple fault")  # because the kernel restarts the machine
        text = (self.directory / "trace.txt").read_text()
        self.assertIn("sysrq triggered crash", text)
        self.assertRegex(text, r"<- \S*(sysrq_handle_crash|__handle_sysrq)\+0x")

    def test_what_is_not_known_is_said(self):
        for filters, message in (("sycalls", "--trace does not know \"sycalls\"; it knows syscalls, locks,"),
                                 ("calls:no_such_function", "this kernel has no such function"),
                                 ("access:no_such_symbol", "this kernel has no symbol no_such_symbol"),
                                 ("access:0x1000", "say how many bytes"),
                                 ("access:current_task", "every CPU has its own current_task")):
            done = subprocess.run([SLALOM, "boot", "--run", "true", "--trace", filters], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    main()
