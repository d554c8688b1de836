"""Shared parts of the tests of the command: a scratch directory with the repository's examples, and ways to run slalom there.

The environment variable SLALOM names the command.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLALOM = os.path.abspath(os.environ.get("SLALOM", ROOT / "build/slalom"))
DEADLINE = 60  # seconds after which a command counts as hanging, on any machine

LOST_UPDATE = "examples/toy/lost-update.toml"
FIXED = "examples/toy/lost-update.fixed.toml"

# n agents of k operations each, all on one variable: (nk)! / k!^n interleavings.
STEPS = """
name = "steps"
[params]
n = 2
k = 10
[shared]
x = { init = 0, atomic = true }
[[thread]]
name = "worker"
copies = "n"
code = "for i in 0..k { x = id }"
"""


def environment(**changes):
    """An environment without the settings of the tester's terminal."""
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return {**env, "LC_ALL": "C.UTF-8", "TERM": "xterm", **changes}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="slalom-cli-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        (self.directory / "examples").symlink_to(ROOT / "examples")

    def write(self, name, text):
        (self.directory / name).write_text(text, encoding="utf-8")
        return name

    def slalom(self, *arguments, command=SLALOM, cwd=None, **changes):
        """Runs the command with pipes instead of a terminal."""
        return subprocess.run([command, *map(str, arguments)], cwd=cwd or self.directory, env=environment(**changes),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, check=False)

    def expect(self, code, *arguments, **options):
        done = self.slalom(*arguments, **options)
        self.assertEqual(done.returncode, code, f"slalom {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done

    def json(self, code, *arguments, **options):
        done = self.expect(code, *arguments, "--json", **options)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def capsule(self, file=LOST_UPDATE, kind="assertion", **options):
        """Finds a bug of this kind and returns its capsule."""
        found = self.json(1, "explore", file, **options)
        return next(f["capsule"] for f in found["findings"] if f["kind"] == kind)

    def start(self, *arguments):
        process = subprocess.Popen([SLALOM, *map(str, arguments)], cwd=self.directory, env=environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        return process

    def terminal(self, *arguments, **changes):
        return Terminal(self, arguments, changes)


def end(process):
    if process.poll() is None:
        process.kill()
    process.communicate()


class Terminal:
    """slalom on a terminal of 80 columns: its output, and keys sent to it."""

    def __init__(self, case, arguments, changes):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen([SLALOM, *map(str, arguments)], cwd=case.directory, env=environment(**changes),
                                        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.descriptor = ours
        self.text = ""
        case.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.descriptor)

    def read_until(self, wanted):
        """Reads until `wanted` appears; until the end if it is None."""
        deadline = time.monotonic() + DEADLINE
        while wanted is None or wanted not in self.text:
            if not select.select([self.descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{wanted!r} did not come:\n{self.text}")
            try:
                piece = os.read(self.descriptor, 65536)
            except OSError:  # Linux reports a closed other side this way
                piece = b""
            if not piece:
                if wanted is None:
                    break
                raise AssertionError(f"{wanted!r} did not come before the end:\n{self.text}")
            self.text += piece.decode("utf-8", "replace")
        return self.text

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def wait(self):
        self.read_until(None)
        return self.process.wait(DEADLINE)
