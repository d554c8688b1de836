"""Flows that share what was prepared: threads of one process, processes that inherit, programs with several flows."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from guest import DEADLINE, ROOT, SLALOM, main

SOCKET = """prepare = '''
socketpair(AF_UNIX, SOCK_DGRAM, 0, &s)
write(s[1], "abc", 3)
'''
[[flow]]
name = "reader"
calls = '''
getpid()
read(s[0], &got(3), 3)
'''
[[flow]]
name = "closer"
prepare = "d = dup(s[0])"
calls = '''
getpid()
close(s[0])
close(d)
close(s[0])
'''
"""
PROCESS = '[process]\nflows = ["reader", "closer"]\n'
FUTEX = """prepare = "word = buf(4)"
[[flow]]
name = "waiter"
calls = "futex(word, FUTEX_WAIT, 0, 0)"
[[flow]]
name = "waker"
calls = '''
futex(word, FUTEX_WAKE, 1)
store(u32, word, 1)
futex(word, FUTEX_WAKE, 1)
'''
"""
BOTH = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "slalom.h"
static int pair[2];
static void* reader(void* unused) {
  char byte;
  slalom_begin(0);
  if (read(pair[0], &byte, 1) != 1) slalom_note("read nothing");
  slalom_end(0);
  return unused;
}
int main(void) {
  pthread_t thread;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || write(pair[1], "a", 1) != 1) return 1;
  pthread_create(&thread, NULL, reader, NULL);
  slalom_begin(1);
  close(pair[0]);
  slalom_end(1);
  pthread_join(thread, NULL);
  return 0;
}
"""


class SharedFlows(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def explore(self, test, *arguments, code=0):
        (self.folder / "test.toml").write_text(test)
        done = subprocess.run([SLALOM, "explore", "test.toml", *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def results(self, test):
        run = json.loads(self.explore(test, "--dry", "--json").stdout)
        return [[call["result"] for call in flow["calls"]] for flow in [*run["prepared"], *run["flows"]]]

    def test_threads_share_descriptors_and_processes_inherit_them(self):
        all_flows, of_closer, reader, closer = self.results(SOCKET)
        self.assertEqual((all_flows, of_closer, reader[1:], closer[1:]), (["0", "3"], ["5"], ["3"], ["0", "0", "-EBADF"]))
        self.assertNotEqual(reader[0], closer[0])  # the process ids
        *_, reader, closer = self.results(SOCKET + PROCESS)
        self.assertEqual(reader[0], closer[0])

    def test_a_word_of_all_flows_is_shared_memory(self):
        for process in ("", '[process]\nflows = ["waiter", "waker"]\n'):
            waiter, waker = self.results(FUTEX + process)
            self.assertEqual((waiter, waker), (["0"], ["1", "0"]))
            # A wait may also begin between the first call of the waker and its store.
            done = json.loads(self.explore(FUTEX + process, "--schedules", "100", "--detectors", "failure", "--json").stdout)
            self.assertEqual(done["findings"], [])
            self.assertGreaterEqual(done["serial_orders"], 3)

    def test_threads_of_a_program_are_flows(self):
        (self.folder / "both.c").write_text(BOTH)
        run = json.loads(self.explore('[[flow]]\nname = "reader"\n[[flow]]\nname = "closer"\n' + PROCESS + 'source = "both.c"\n',
                                      "--dry", "--json").stdout)
        self.assertEqual([[call["text"] for call in flow["calls"]] for flow in run["flows"]], [["read"], ["close"]])
        self.assertEqual([[call["result"] for call in flow["calls"]] for flow in run["flows"]], [["1"], ["0"]])

    def test_prepared_calls_that_block_or_fail_are_named(self):
        flows = '[[flow]]\ncalls = "getpid()"\n[[flow]]\ncalls = "getpid()"\n'
        blocks = self.explore("prepare = '''\npipe(&p)\nread(p[0], &b(1), 1)\n'''\n" + flows, "--dry", code=2)
        self.assertIn("test.toml:3: the prepared call read(p[0], &b(1), 1) does not return", blocks.stderr)
        fails = self.explore('prepare = "close(99)"\n' + flows, "--schedules", "3")
        self.assertIn("test.toml:1: the prepared call close(99) gives -EBADF", fails.stderr)

    def test_mistakes_have_their_line(self):
        flows = '[[flow]]\nname = "a"\ncalls = "getpid()"\n[[flow]]\nname = "b"\ncalls = "getpid()"\n'
        for text, message in (
            ('[process]\nflows = ["a", "c"]', 'test.toml:8: no flow is called "c"; the flows are: a, b'),
            ('[process]\nflows = ["a", "a"]', "test.toml:8: a is in a process already"),
            ('[process]\nflows = ["a"]', "test.toml:7: a process needs flows"),
            ('[process]\nflows = ["a", "b"]\nsource = "x.c"', "test.toml:8: a has calls of its own"),
        ):
            self.assertIn(message, self.explore(flows + text, code=2).stderr)
        chooses = self.explore('prepare = "close(choose(2))"\n' + flows, code=2)
        self.assertIn("test.toml:1: choose() is explored, and prepared calls are not", chooses.stderr)

    def test_the_examples_with_threads_can_be_explored(self):
        examples = sorted((ROOT / "examples/kernel/threads").glob("*.toml"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            dry = self.explore(example.read_text(), "--dry")
            self.assertEqual(dry.stderr, "", example)
            self.assertNotRegex(dry.stdout, "= -E(INVAL|BADF|FAULT)", example)  # the arguments are right
            self.explore(example.read_text(), "--schedules", "20", "--detectors", "failure")

    def test_each_part_of_the_kernel_has_a_start(self):
        for part in ("net", "fs", "ipc", "io_uring"):
            made = subprocess.run([SLALOM, "new", "kernel-test", part, "--like", part], cwd=self.folder, capture_output=True, text=True,
                                  timeout=DEADLINE, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            done = subprocess.run([SLALOM, "explore", f"{part}.toml", "--schedules", "20", "--json"], cwd=self.folder, capture_output=True,
                                  text=True, timeout=DEADLINE, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertGreater(json.loads(done.stdout)["serial_orders"], 1)


if __name__ == "__main__":
    main()
