"""Kernel tests that do not end or cannot start: the messages, and when they appear. Searches of them can be interrupted."""

import json
import os
import signal
import subprocess
import time

from guest import DEADLINE, SLALOM, Guest, main

OTHER = """
[[flow]]
name = "other"
calls = 'getppid()'
"""
TWO = """
[[flow]]
name = "one"
calls = 'getppid()'
""" + OTHER
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
#include "slalom.h"
int main(int count, char** arguments) {
  const long flow = count > 1 ? atol(arguments[1]) : 0;
  BODY
}
"""
BUSY = "while true; do :; done"


class Endings(Guest):
    def setUp(self):
        super().setUp()
        # Reports must name a place in the test's file even if its folder does not fit into a line.
        self.directory /= "-".join(["a-folder-with-a-long-name"] * 6)
        self.directory.mkdir()

    def write(self, text, body=None):
        if body is not None:
            (self.directory / "flow.c").write_text(PROGRAM.replace("BODY", body))
        path = self.directory / "x.toml"
        path.write_text(text)
        return path

    def explore(self, text, *arguments, body=None, schedules=8):
        return subprocess.run([SLALOM, "explore", self.write(text, body), "--out", "", "--no-shrink", "--schedules", str(schedules), *arguments],
                              cwd=self.directory, capture_output=True, text=True, timeout=DEADLINE, check=False)

    def refused(self, text, words, body=None):
        """Expects a message that starts with this text after the file's name."""
        done = self.explore(text, body=body)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(f"{self.directory}/x.toml{words}", done.stderr)
        return done.stderr

    def finds(self, text, body=None, schedules=8):
        """Returns the exit code and the report."""
        done = self.explore(text, "--detectors", "failure,kernel-livelock", body=body, schedules=schedules)
        return done.returncode, done.stdout + done.stderr

    def test_a_flow_that_never_ends_is_named(self):
        limits = "[limits]\nexecution = 1_000_000\n"
        flow = '[[flow]]\nname = "endless"\nsource = "flow.c"\n'
        for loop in ("for (;;) getppid();", "for (;;) {}"):
            said = self.refused(OTHER + flow + limits, ":5: endless does not end: not within 1,0",
                                body=f"slalom_begin(flow); {loop}")
            self.assertIn("[limits]", said)
        code, said = self.finds(OTHER + flow + limits, body="slalom_begin(flow); getppid(); slalom_end(flow); return 0;")
        self.assertEqual(code, 0, said)

    def test_a_flow_that_sometimes_does_not_end_is_a_livelock(self):
        body = "slalom_begin(flow); if (slalom_choose(4) == 1) for (;;) getppid(); slalom_end(flow); return 0;"
        code, said = self.finds('[[flow]]\nname = "chooser"\nsource = "flow.c"\n' + OTHER + "[limits]\nexecution = 1_000_000\n", body=body)
        self.assertEqual(code, 1, said)
        self.assertIn("(livelock) livelock: chooser does not end", said)

    def test_a_check_that_does_not_end_is_named(self):
        said = self.refused(f'\ncheck = "{BUSY}"' + TWO + "[limits]\ncheck = 3_000_000\n", f":2: the check `{BUSY}` does not end: not within 3,000,000")
        self.assertIn("[limits]", said)
        self.refused('check = "sleep 1000000"' + TWO + "[limits]\ncheck = 50_000_000\n", ":1: the check `sleep 1000000` does not end")
        # The limit allows three seconds of waiting. The check waits for one.
        code, said = self.finds('check = "sleep 1"' + TWO + "[limits]\ncheck = 50_000_000\n", schedules=1)
        self.assertEqual(code, 0, said)

    def test_a_set_up_that_does_not_end_is_named(self):
        self.refused('setup = ["true",\n"sleep 100000"]' + TWO + "[limits]\npreparation = 500_000_000\n",
                     ":2: set-up command `sleep 100000` has not ended")

    def test_a_check_that_cannot_be_run_is_no_failure_of_the_kernel(self):
        self.refused('check = "/sbin/nosuchprogram --all"' + TWO, ":1: the check `/sbin/nosuchprogram --all` cannot be run in the guest")
        code, said = self.finds('check = "exit 7"' + TWO, schedules=1)
        self.assertEqual(code, 1, said)
        self.assertIn("the check failed with status 7", said)
        self.assertIn("x.toml:1: the check `exit 7`", said)

    def test_a_flow_that_dies_is_named(self):
        code, said = self.finds(OTHER + '[[flow]]\nname = "crasher"\nsource = "flow.c"\n',
                                body="slalom_begin(flow); *(volatile int*)(flow - 1) = 1; slalom_end(flow); return 0;", schedules=1)
        self.assertEqual(code, 1, said)
        self.assertIn("assertion failed: crasher was ended by signal 11 (Segmentation fault)", said)
        self.assertIn("x.toml:5: crasher was ended by signal 11", " ".join(said.split()))

    def test_a_program_that_never_begins_is_named(self):
        self.refused(OTHER + '[[flow]]\nname = "short"\nsource = "flow.c"\n', ":5: short has ended before all flows were ready", body="return (int)(flow - 1);")

    def test_names_that_nobody_has(self):
        self.refused('\nkernel = "debian:7.7"' + TWO, ':2: ')
        self.refused('\nkernel = "nosuch.bz"' + TWO, f":2: there is no file {self.directory}/nosuch.bz")
        self.refused('scope = ["function:vfs_read",\n"function:do_sys*",\n"module:nothere"]' + TWO, ':3: the scope "module:nothere" is no module')

    def test_a_kernel_is_looked_for_beside_the_test(self):
        (self.directory / "mine").write_text("no kernel")
        done = subprocess.run([SLALOM, "explore", self.write('kernel = "mine"' + TWO)], cwd="/", capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{self.directory}/mine", done.stderr)
        self.assertNotIn("there is no file", done.stderr)

    def test_an_execution_that_takes_for_ever_can_be_interrupted(self):
        endless = f'check = "{BUSY}"\nscope = ["function:vfs_read"]' + TWO + "[limits]\ncheck = 1_000_000_000_000\n"
        test, state = self.write(endless), self.directory / "state"
        for number in (signal.SIGINT, signal.SIGTERM):
            state.unlink(missing_ok=True)
            with subprocess.Popen([SLALOM, "explore", test, "--out", "", "--json", "--state", state], stdout=subprocess.PIPE, text=True) as search:
                while not state.exists():  # it exists when the search begins
                    self.assertIsNone(search.poll())
                    time.sleep(0.05)
                search.send_signal(number)
                result = json.loads(search.communicate(timeout=DEADLINE)[0])
            self.assertEqual((search.returncode, result["end"], result["executions"], result["truncated"]), (2, "interrupted", 0, 0))

    def interrupted_at_once(self, test):
        """Ctrl-C as soon as the command handles it: before the search starts."""
        return self.interrupted(self.catches_interrupts, "explore", test, "--out", "", code=2)

    def interrupted(self, when, *arguments, code):
        with subprocess.Popen([SLALOM, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
            while not when(search.pid):
                self.assertIsNone(search.poll())
                time.sleep(0.01)
            search.send_signal(signal.SIGINT)
            said, complained = search.communicate(timeout=DEADLINE)
        self.assertEqual(search.returncode, code, complained)
        return said, complained

    def catches_interrupts(self, process):
        with open(f"/proc/{process}/status", encoding="ascii") as status:
            caught = next((line for line in status if line.startswith("SigCgt:")), "SigCgt: 0")
        return int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1 == 1

    def has_worked(self, process):
        """Whether it has run for much longer than it needs to start."""
        with open(f"/proc/{process}/stat", encoding="ascii") as status:
            ticks = int(status.read().rsplit(")", 1)[1].split()[11])  # in user mode
        return ticks >= 3 * os.sysconf("SC_CLK_TCK")

    def test_a_set_up_that_takes_for_ever_can_be_interrupted(self):
        test = self.write(f'setup = ["{BUSY}"]' + TWO + "[limits]\npreparation = 1_000_000_000_000\n")
        said, complained = self.interrupted_at_once(test)
        self.assertEqual(said, "")
        self.assertRegex(complained, r"^(slalom: stopping; [^\n]*\n)?slalom: interrupted (while debian:6.1 was booting|at .*x.toml:1: .*); nothing was explored\n$")

    def test_serial_orders_can_be_interrupted(self):
        # 924 orders: one or two seconds.
        calls = "calls = '''\n" + "socket(AF_INET, SOCK_STREAM, 0)\n" * 6 + "'''\n"
        test = self.write("".join(f'[[flow]]\nname = "{name}"\n{calls}' for name in ("one", "other")))
        # From now on the machine is in the cache.
        whole = self.explore(test.read_text(), "--json", schedules=1)
        self.assertNotIn("not_compared", json.loads(whole.stdout))
        result = json.loads(self.interrupted_at_once(test)[0])
        self.assertEqual((result["end"], result["executions"]), ("interrupted", 0))
        self.assertEqual(len(result["not_compared"]), 1)
        self.assertRegex(result["not_compared"][0], r"^results with serial orders \(interrupted after \d+ of them\)$")

    def test_replays_can_be_interrupted(self):
        test = self.write('check = "exit 7"' + TWO)
        subprocess.run([SLALOM, "explore", test, "--out", "kept", "--no-shrink", "--schedules", "1"], cwd=self.directory,
                       capture_output=True, timeout=DEADLINE, check=False)
        [capsule] = self.directory.glob("kept/*/capsule.slalom")
        arguments = ("replay", capsule, "--times", "1000000")
        self.assertIn("interrupted before it was replayed", self.interrupted(self.catches_interrupts, *arguments, code=2)[1])
        result = json.loads(self.interrupted(self.has_worked, *arguments, code=1)[0])
        same, tried = map(int, result["replayed"].split("/"))
        self.assertTrue(result["same"])
        self.assertEqual(same, tried)
        self.assertIn(tried, range(1, 1000000))

    def test_time_ends_executions_that_take_for_ever(self):
        # Without a scope, some executions precede the search.
        for scope in ("", 'scope = ["function:vfs_read"]\n'):
            done = self.explore(f'{scope}check = "{BUSY}"' + TWO + "[limits]\ncheck = 1_000_000_000_000\n", "--time", "1s", "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout)["end"]), (2, "time limit"), done.stderr)


if __name__ == "__main__":
    main()
