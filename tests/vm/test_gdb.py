"""A stock gdb debugs a real kernel: breakpoints, steps and watchpoints, forward and backward, with the states of a plain run."""

import re
import shutil
import socket
import subprocess
import sys
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, SLALOM, Guest, main

# Functions and variables are at fixed addresses: the test looks them up in one boot and uses them in others.
GUEST = ("--kernel", KERNEL, "--cpus", "2", "--append", "nokaslr")
NAMES = ("kernel_clone", "total_forks", "asm_sysvec_apic_timer_interrupt", "asm_sysvec_reschedule_ipi", "default_idle")
STATE = "monitor position\nmonitor hash\n"


class Debugged(Guest):
    @classmethod
    def setUpClass(cls):
        wanted = "|".join(NAMES)
        done = subprocess.run([SLALOM, "boot", *GUEST, "--run", f"grep -E ' ({wanted})$' /proc/kallsyms"], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE, check=True)
        found = re.findall(r"^([0-9a-f]{16}) \w (\w+)$", done.stdout, re.MULTILINE)
        cls.symbols = {name: int(address, 16) for address, name in found}

    def start(self):
        """A guest that waits for gdb, and its port."""
        # pylint: disable-next=consider-using-with
        guest = subprocess.Popen([SLALOM, "boot", *GUEST, "--run", "echo hello", "--gdb", "0"], cwd=self.directory,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, guest)
        waiting = guest.stderr.readline()
        found = re.fullmatch(r"waiting for gdb: target remote 127\.0\.0\.1:(\d+)\n", waiting)
        self.assertTrue(found, waiting)
        return guest, int(found[1])

    def end(self, guest):
        guest.kill()
        guest.communicate()

    def gdb(self, port, script):
        """gdb's output for each part of a script. A part begins with `@name`."""
        lines = ["set pagination off", "set confirm off", "set architecture i386:x86-64", f"target remote 127.0.0.1:{port}"]
        for line in script.format(**{name: hex(address) for name, address in self.symbols.items()}).split("\n"):
            lines.append(f"echo \\n{line}\\n" if line.startswith("@") else line.strip())
        path = self.directory / "script.gdb"
        path.write_text("\n".join(lines) + "\n")
        # gdb prints the output of `monitor` on standard error.
        done = subprocess.run(["gdb", "-nx", "-batch", "-x", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE, check=False)
        parts = re.split(r"^@(\w+)\n", done.stdout, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2]))

    def state(self, text):
        """Position and hash, as STATE prints them."""
        found = re.search(r"^(\d+) \(history begins at \d+\)\n([0-9a-f]{16})$", text, re.MULTILINE)
        self.assertTrue(found, text)
        return int(found[1]), found[2]

    def test_forward_and_backward(self):
        guest, port = self.start()
        said = self.gdb(port, f"""
@first
{STATE}
break *{{kernel_clone}}
@broken
continue
info threads
info registers rip cr3 gs_base
{STATE}
@stepped
stepi
stepi
stepi
{STATE}
@stepped_back
reverse-stepi
reverse-stepi
reverse-stepi
{STATE}
delete
watch *(unsigned long *){{total_forks}}
@one
continue
{STATE}
@two
continue
{STATE}
@three
continue
{STATE}
@before_three
reverse-continue
{STATE}
@before_two
reverse-continue
{STATE}
@two_again
continue
{STATE}
@three_again
continue
{STATE}
delete
@begin
reverse-continue
{STATE}
@broken_again
break *{{kernel_clone}}
continue
{STATE}
@changed
delete
stepi
set variable *(unsigned long *){{total_forks}} = 77
stepi
stepi
reverse-continue
monitor position
@detached
detach
""")
        first, first_hash = self.state(said["first"])
        self.assertEqual(first, 0)
        self.assertIn(f"hit Breakpoint 1, {self.symbols['kernel_clone']:#x}", said["broken"])
        self.assertRegex(said["broken"], r"\* 1 +Thread 1 \(CPU 0 \[running\]\)")
        self.assertRegex(said["broken"], r"  2 +Thread 2 \(CPU 1 \[not started\]\)")
        broken, broken_hash = self.state(said["broken"])
        self.assertEqual(self.state(said["stepped"])[0], broken + 3)
        self.assertEqual(self.state(said["stepped_back"]), (broken, broken_hash))

        for part, old, new in (("one", 0, 1), ("two", 1, 2), ("three", 2, 3), ("before_three", 3, 2), ("before_two", 2, 1),
                               ("two_again", 1, 2), ("three_again", 2, 3)):
            self.assertIn(f"Old value = {old}\nNew value = {new}\n", said[part])
        two, three = self.state(said["two"]), self.state(said["three"])
        self.assertEqual(self.state(said["before_three"])[0], three[0] - 1)
        self.assertEqual(self.state(said["before_two"])[0], two[0] - 1)
        self.assertEqual(self.state(said["two_again"]), two)
        self.assertEqual(self.state(said["three_again"]), three)
        self.assertIn("No more reverse-execution history", said["begin"])
        self.assertEqual(self.state(said["begin"]), (0, first_hash))
        self.assertEqual(self.state(said["broken_again"]), (broken, broken_hash))
        self.assertIn("No more reverse-execution history", said["changed"])
        self.assertIn(f"{broken + 1} (history begins at {broken + 1})", said["changed"])

        # The debugger had no effect: the guest ends as usual, and passed through the same states.
        output, messages = guest.communicate(timeout=DEADLINE)
        self.assertEqual(guest.returncode, 0, messages)
        self.assertEqual(output.count("hello"), 1)
        plain = self.boot(*GUEST, "--run", "echo hello", "--limit", three[0], "--state-hash-every", three[0])
        self.assertEqual(plain["hashes"], [{"instructions": three[0], "hash": three[1]}])

    def test_interrupts_of_two_cpus_come_again(self):
        """Breakpoints at the first instructions of interrupt handlers, that is, between two instructions of the interrupted code."""
        _, port = self.start()
        count = 12
        forward = "".join(f"@forward_{i}\ncontinue\n{STATE}" for i in range(count))
        backward = "".join(f"@backward_{i}\nreverse-continue\n{STATE}" for i in reversed(range(count - 1)))
        said = self.gdb(port, f"""
break *{{kernel_clone}}
ignore 1 30
continue
delete
break *{{asm_sysvec_apic_timer_interrupt}}
break *{{asm_sysvec_reschedule_ipi}}
break *{{default_idle}}
{forward}
{backward}
kill
""")
        there = [said[f"forward_{i}"] for i in range(count)]
        for number in (2, 3, 4):
            self.assertTrue(any(f"hit Breakpoint {number}," in text for text in there), there)
        for cpu in (1, 2):
            self.assertTrue(any(f"Thread {cpu} hit" in text for text in there), there)
        for i in range(count - 1):
            self.assertEqual(self.state(said[f"backward_{i}"]), self.state(there[i]))

    def test_back_from_the_end(self):
        guest, port = self.start()
        said = self.gdb(port, f"""
break *{{kernel_clone}}
ignore 1 100000
@ended
continue
{STATE}
@back
reverse-stepi
reverse-stepi
{STATE}
@ended_again
continue
{STATE}
kill
""")
        self.assertIn("The guest switched itself off. One can still go back.", said["ended"])
        self.assertIn("No more reverse-execution history", said["ended"])
        end = self.state(said["ended"])
        self.assertLess(self.state(said["back"])[0], end[0])
        self.assertEqual(self.state(said["ended_again"]), end)
        output, messages = guest.communicate(timeout=DEADLINE)
        self.assertEqual(guest.returncode, 0, messages)
        self.assertEqual(output.count("hello"), 1)

    def test_the_line(self):
        """Without gdb: Ctrl-C while the guest runs, invalid input, and a client that connects again."""
        guest, port = self.start()
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as line:
            line.sendall(b"$vCont;c#a8\x03")
            said = b""
            while b"#" not in said:
                said += line.recv(4096)
            self.assertRegex(said, rb"^\+\$T02thread:[12];#")
            line.sendall(b"+$g#00")
            self.assertEqual(line.recv(1), b"-")
            line.sendall(b"$" + b"x" * 100_000)
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as line:
            line.sendall(b"$qC#b4")
            self.assertRegex(line.recv(4096), rb"^\+(\$QC[12]#..)?$")
            line.sendall(b"$k#6b")
        self.assertEqual(guest.wait(timeout=DEADLINE), 0)

    def test_a_port_in_use_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([SLALOM, "boot", *GUEST, "--gdb", str(port)], capture_output=True, stdin=subprocess.DEVNULL,
                                  text=True, timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"cannot wait for gdb on port {port}", done.stderr)


if __name__ == "__main__":
    if not shutil.which("gdb"):
        print("gdb is not installed: scripts/bootstrap installs it")
        sys.exit(NOTHING_TO_DO)
    main()
