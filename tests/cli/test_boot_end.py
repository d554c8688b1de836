"""The end of slalom boot with a kernel that fails or gives an exit code: its messages and its own exit code."""

import struct
import unittest

from support import ROOT, Case

LOAD = 0x100000
# The ways in which a kernel stops the machine, as 32-bit code.
POWER_OFF = b"\x66\xba\x04\x06\x66\xb8\x00\x20\x66\xef"  # mov dx, 0x604; mov ax, 0x2000; out dx, ax
RESET = b"\xb0\xfe\xe6\x64"  # mov al, 0xfe; out 0x64, al


def exit_with(value):
    return b"\xb8" + struct.pack("<I", value) + b"\xe7\xf4"  # mov eax, value; out 0xf4, eax


def multiboot(code):
    """Makes a kernel that starts with `code`, in 32-bit protected mode."""
    flags = 0x10000  # the header contains the load address
    header = [0x1BADB002, flags, -(0x1BADB002 + flags) & 0xFFFFFFFF, LOAD, LOAD, 0, 0, LOAD + 32]
    return struct.pack("<8I", *header) + code + b"\xf4\xeb\xfd"  # hlt; jmp to it


# Paging with tables that map only the first 4 MiB, and an unmapped interrupt table, so every fault fails.
FAULTING = b"".join([
    b"\x0f\x01\x1d", struct.pack("<I", LOAD + 0x800),  # lidt [LOAD + 0x800]
    b"\xc7\x05", struct.pack("<II", 0x200000, 0x201003),  # the directory's first entry
    b"\xbf", struct.pack("<I", 0x201000), b"\xb9", struct.pack("<I", 1024), b"\xb8", struct.pack("<I", 3),
    b"\xab\x05", struct.pack("<I", 4096), b"\xe2\xf8",  # stosd; add eax, 4096; loop
    b"\xb8", struct.pack("<I", 0x200000), b"\x0f\x22\xd8",  # mov cr3, eax
    b"\x0f\x20\xc0\x0d", struct.pack("<I", 0x80000000), b"\x0f\x22\xc0",  # cr0 |= PG
    b"\xc6\x05", struct.pack("<I", 0xDEAD000), b"\x01",  # mov byte [0xdead000], 1
])
GATES = struct.pack("<HI", 0x7FF, 0xC0000000)


class End(Case):
    def kernel(self, code, name="kernel"):
        (self.directory / name).write_bytes(multiboot(code))
        return name

    def faulting(self):
        image = multiboot(FAULTING)
        (self.directory / "faulting").write_bytes(image.ljust(0x800, b"\0") + GATES)
        return "faulting", LOAD + 32 + len(FAULTING) - 7  # the address of the last instruction

    def test_a_triple_fault_is_a_failure_and_names_its_faults(self):
        kernel, place = self.faulting()
        done = self.expect(1, "boot", "--kernel", kernel)
        self.assertIn("faulting: a CPU gave up after a triple fault\n", done.stderr)
        self.assertIn("CPU 0 gave up after a triple fault\n"
                      f"  #PF with error code 0x2 at rip {place:#x}, cr2 0xdead000\n"
                      f"  while that was delivered: #PF with error code 0x0 at rip {place:#x}, cr2 0xc0000070\n"
                      f"  while that was delivered: #PF with error code 0x0 at rip {place:#x}, cr2 0xc0000040\n", done.stderr)
        told = self.json(1, "boot", "--kernel", kernel)
        self.assertEqual((told["stop"], told["cpu"]), ("triple fault", 0))
        self.assertEqual(told["faults"], [{"exception": "#PF", "vector": 14, "error_code": code, "rip": f"{place:#x}", "cr2": f"{at:#x}"}
                                          for code, at in ((2, 0xDEAD000), (0, 0xC0000070), (0, 0xC0000040))])

    def test_the_first_fault_is_named_too_where_four_lead_there(self):
        # ud2, with an empty interrupt table
        told = self.json(1, "boot", "--kernel", self.kernel(b"\x0f\x0b"))
        self.assertEqual([fault["exception"] for fault in told["faults"]], ["#UD", "#GP", "#GP", "#GP"])
        self.assertNotIn("error_code", told["faults"][0])

    def test_the_guests_exit_code_is_that_of_slalom(self):
        # As in QEMU's isa-debug-exit, the exit code is twice the value plus one.
        for value, code in ((0, 1), (1, 3), (0x10, 33), (0x11, 35), (0x7F, 255), (0x80, 1)):
            kernel = self.kernel(exit_with(value))
            done = self.expect(code, "boot", "--kernel", kernel)
            self.assertIn(f"the guest ended with exit code {code}\n", done.stderr)
        told = self.json(33, "boot", "--kernel", self.kernel(exit_with(0x10)))
        self.assertEqual((told["stop"], told["exit_code"]), ("exit", 33))

    def test_other_ends_are_no_failures(self):
        for code, stop in ((POWER_OFF, "power-off"), (RESET, "reset"), (b"\xfa", "idle")):
            told = self.json(0, "boot", "--kernel", self.kernel(code))
            self.assertEqual(told["stop"], stop)
            self.assertNotIn("faults", told)


class MachineVersion(Case):
    def test_a_capsule_of_an_older_machine_is_refused_with_the_reason(self):
        # A capsule of version 1, with turns of 20,000 instructions. It is refused before slalom looks for its kernel.
        trust = ["--trust"] if "--trust" in self.expect(0, "replay", "--help").stdout else []
        done = self.expect(2, "replay", ROOT / "tests/golden/formats/machine-v1-capsule.slalom", *trust)
        self.assertIn("made with version 1 of slalom's virtual machine, and this is version ", done.stderr)
        self.assertIn("explore /test/x.toml again", done.stderr)


if __name__ == "__main__":
    unittest.main()
