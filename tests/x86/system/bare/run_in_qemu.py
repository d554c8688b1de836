#!/usr/bin/env python3
"""Runs a bare-metal program in QEMU's interpreter, to check that the tests' expectations are right.

usage: run_in_qemu.py QEMU PROGRAM [--cpus N] [--stop HOW] [--expect FILE]   (as for run_bare)
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qemu")
    parser.add_argument("program")
    parser.add_argument("--cpus", default="1")
    parser.add_argument("--stop", default="exit")
    parser.add_argument("--expect")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        console = pathlib.Path(folder) / "console"
        command = [options.qemu, "-accel", "tcg", "-cpu", "qemu64", "-m", "256", "-smp", options.cpus, "-display", "none",
                   "-nodefaults", "-device", "VGA", "-no-reboot", "-serial", f"file:{console}",
                   "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel", options.program]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=100, check=False)
        text = console.read_text(errors="replace").replace("\r", "")
    print(text, end="")
    wanted = 0 if options.stop in ("reset", "triple fault") else 1  # the debug exit port makes 1 of 0
    if done.returncode != wanted:
        sys.exit(f"PROBLEM: QEMU ended with {done.returncode}, not {wanted}")
    if options.expect:
        if text != pathlib.Path(options.expect).read_text():
            sys.exit(f"PROBLEM: it did not print what {options.expect} holds")
        return
    lines = text.splitlines()
    if not lines or not lines[-1].startswith("done ") or any(not line.startswith(("ok ", "done ")) for line in lines):
        sys.exit("PROBLEM: not all of its lines are good")


main()
