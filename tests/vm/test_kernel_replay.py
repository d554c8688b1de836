"""Examining findings of kernel tests: a stock gdb at the failure, backward and forward along the schedule; and the trace of every
instruction, compared with the records of the search."""

import json
import re
import shutil
import subprocess
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, ROOT, SLALOM, Guest, cached_kernels

MODULE = ROOT / "examples/kernel-modules/torn_read"
STATE = ("monitor position", "monitor hash")

CHECKED = """
check = "exit 7"
[[flow]]
calls = "getpid()"
[[flow]]
calls = "getppid()"
"""


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE,
                          check=False)


class KernelReplay(Guest):
    def find(self, name, *arguments, test=MODULE / "test.toml", of=""):
        """The JSON of the first finding whose title contains the text."""
        done = slalom("explore", test, *([] if of else ["--first"]), "--workers", 1, "--out", self.directory / name, "--json", *arguments)
        if "scripts/build-modules" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return next(one for one in json.loads(done.stdout)["findings"] if of in one["title"])

    def race(self):
        return self.find("race", "--detectors", "kernel-race", "--fail-on", "race", "--no-shrink", "--schedules", 200, of="card_")

    def gdb(self, capsule, *commands, start=False):
        """gdb's output in parts. A command that begins with @ names the part that follows."""
        arguments = []
        for command in commands:
            arguments += ["--gdb-command", f"echo \\n{command}\\n" if command.startswith("@") else command]
        done = subprocess.run([SLALOM, "replay", capsule, "--gdb-start" if start else "--gdb", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertTrue(done.stdout.endswith("the same again\n"), done.stdout)
        parts = re.split(r"^@(\w+)\n", done.stdout, flags=re.MULTILINE)
        return {"first": parts[0], **dict(zip(parts[1::2], parts[2::2]))}

    def state(self, text):
        """Position and hash, as STATE prints them."""
        found = re.search(r"^(\d+) \(history begins at (\d+)\)\n([0-9a-f]{16})$", text, re.MULTILINE)
        self.assertTrue(found, text)
        return int(found[1]), found[3]

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed: scripts/bootstrap installs it")
    def test_gdb_stands_at_the_second_access_of_a_race(self):
        race = self.race()
        second = max(race["evidence"], key=lambda one: one["step"])
        said = self.gdb(race["capsule"], "@here", "print/x $pc", "info threads", "bt", *STATE,
                        "@back", "reverse-stepi", "print/x $pc", *STATE,
                        "@again", "stepi", "print/x $pc", *STATE,
                        "@end", "continue", *STATE,
                        "@begin", "reverse-continue", *STATE,
                        "@end_again", "continue", *STATE)
        self.assertIn("before the second access of the race", said["first"])
        self.assertIn(f"= {second['pc']}\n", said["here"])
        cpu = int(second["agent"].split(".")[0])  # number of the CPU, counted from 1
        self.assertRegex(said["here"], rf"\* {cpu} +Thread {cpu} \(CPU {cpu - 1} \[running\]\)")
        self.assertRegex(said["here"], r"Thread 2 \(CPU 1 ")
        # The module's own functions, and those of a kernel without its vmlinux, up to the system call.
        self.assertRegex(said["here"], r"#0 .*(ether_addr_copy|card_read|card_write)")
        self.assertRegex(said["here"], r"#\d+ .* in vfs_(read|write) \(")
        self.assertRegex(said["here"], r"#\d+ .* in entry_SYSCALL_64")
        here = self.state(said["here"])
        # Back by one instruction of this CPU: before a switch, if others ran in between.
        self.assertLess(self.state(said["back"])[0], here[0])
        self.assertNotIn(f"= {second['pc']}\n", said["back"])
        self.assertEqual(self.state(said["again"]), here)
        self.assertIn("The schedule ends here", said["end"])
        self.assertGreater(self.state(said["end"])[0], here[0])
        self.assertIn("No more reverse-execution history", said["begin"])
        self.assertEqual(self.state(said["end_again"]), self.state(said["end"]))

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed: scripts/bootstrap installs it")
    def test_breakpoints_meet_the_cpus_in_the_order_of_the_schedule(self):
        found = self.find("found", "--detectors", "failure")
        said = self.gdb(found["capsule"], "break card_write", "break card_read", "@one", "continue", "@two", "continue",
                        "@before", "reverse-continue", "@end", "delete", "continue", *STATE, start=True)
        self.assertIn("at the start of the schedule", said["first"])
        hits = [re.search(r"Thread (\d) hit Breakpoint \d, (card_\w+)", said[part]) for part in ("one", "two", "before")]
        self.assertTrue(all(hits), said)
        functions = {hit[2]: hit[1] for hit in hits}
        self.assertEqual(functions, {"card_write": "1", "card_read": "2"})  # flow i runs on CPU i
        self.assertEqual(hits[0].group(0), hits[2].group(0))
        # The same end as in another session, which began at the failure.
        other = self.gdb(found["capsule"], "@end", "reverse-stepi", "continue", *STATE)
        self.assertIn("at the end of the schedule", other["first"])
        self.assertEqual(self.state(other["end"]), self.state(said["end"]))

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed: scripts/bootstrap installs it")
    def test_gdb_stands_before_the_instruction_that_faults(self):
        test = ROOT / "examples/kernel-modules/pipe_open/test.toml"
        found = self.find("oops", "--detectors", "console", "--no-shrink", test=test)
        place = re.search(r"RIP: 0010:(\w+)\+0x([0-9a-f]+)/", found["detail"])
        said = self.gdb(found["capsule"], "@here", "info symbol $pc", "@fault", "stepi", "stepi", "bt 1")
        self.assertIn("before the instruction that failed", said["first"])
        self.assertRegex(said["here"], rf"^{place[1]} \+ {int(place[2], 16)} in section")
        self.assertIn("exc_page_fault", said["fault"])

    def test_the_check_can_be_traced(self):
        test = self.directory / "checked.toml"
        test.write_text(CHECKED)
        found = self.find("checked", "--no-shrink", test=test)
        self.assertEqual(found["title"], "assertion failed: the check failed with status 7")
        flows = slalom("replay", found["capsule"], "--trace").stdout.splitlines()
        self.assertRegex(flows[-2], r"^# the flows are done; the check after them has \d+ instructions, which --trace-check shows, too$")
        announced = int(re.search(r"has (\d+) instructions", flows[-2])[1])
        of_flows = int(re.fullmatch(r"# (\d+) instructions; the same again", flows[-1])[1])
        with subprocess.Popen([SLALOM, "replay", found["capsule"], "--trace-check"], stdout=subprocess.PIPE, text=True) as done:
            count, begins, ended, line = 0, 0, False, ""
            for number, line in enumerate(done.stdout):
                if number < len(flows) - 2:
                    self.assertEqual(line.rstrip("\n"), flows[number])
                if " insn " in line:
                    self.assertEqual(int(line.split()[0]), count)
                    count += 1
                elif line.startswith("# the flows are done"):
                    begins = number
                elif " syscall 231 0x7 " in line:  # exit_group(7), by the shell
                    ended = True
        self.assertEqual(line, f"# {count} instructions; the same again\n")
        self.assertEqual((done.returncode, begins, count), (1, len(flows) - 2, of_flows + announced))
        self.assertTrue(ended)

    def test_the_trace_of_instructions_has_the_accesses_that_the_search_saw(self):
        found = self.find("found", "--detectors", "failure")
        saved = self.directory / "trace.slalom"
        self.assertEqual(slalom("replay", found["capsule"], "--save-trace", saved).returncode, 1)
        recorded = slalom("trace", saved, "--numbers").stdout
        second_source = [(int(step), int(pc, 16), int(address, 16), int(value, 0)) for step, pc, address, value in
                         re.findall(r"^ *(\d+)  \S+ +(0x\w+) +(?:load|store|rmw|cas)\S* (0x\w+) (?:<-|->) (\w+)(?:$|, )",
                                    recorded, re.MULTILINE)]
        self.assertGreater(len(second_source), 1000)

        done = slalom("replay", found["capsule"], "--trace")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        lines = [line.split(maxsplit=3) for line in done.stdout.splitlines() if not line.startswith("#")]
        pcs = [int(rest.split()[0], 16) for _, _, kind, rest in lines if kind == "insn"]
        steps = [int(step) for step, _, kind, _ in lines if kind == "insn"]
        self.assertEqual(steps, list(range(len(steps))))
        self.assertTrue(done.stdout.endswith(f"# {len(steps)} instructions; the same again\n"), done.stdout[-200:])
        seen = {(int(step), pcs[int(step)], int(rest.split()[0], 16), int(rest.split()[2], 16))
                for step, _, kind, rest in lines if kind in ("load", "store") and "#" not in rest}
        self.assertEqual([one for one in second_source if one not in seen][:5], [])


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        print(f"{KERNEL} is not in the cache: scripts/fetch-kernel fetches it")
        raise SystemExit(NOTHING_TO_DO)
    unittest.main()
