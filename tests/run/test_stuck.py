"""Programs that never reach an end that slalom can see: their search fails soon, whatever its limits are."""

import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import SLALOM, ProgramTest

# It waits by reading memory, which slalom does not see.
SPINS = r"""
#include <pthread.h>
static volatile int flag;
static void *spin(void *unused) {
  while (!flag) {}
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, spin, 0);
  for (;;) {}
}
"""

# A library that makes system calls without libc, as OpenMP's does.
OWN_CALLS = r"""
void wait_while(int *word, int value) {
  register long none __asm__("r10") = 0;
  long result = 202;  /* futex */
  __asm__ volatile("syscall" : "+a"(result) : "D"(word), "S"(128L), "d"((long)value), "r"(none) : "rcx", "r11", "memory");
}
"""
USES_THEM = r"""
#include <pthread.h>
extern void wait_while(int *word, int value);
static int word;
static void *set(void *unused) {
  word = 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, set, 0);
  wait_while(&word, 0);
  pthread_join(thread, 0);
}
"""


class Stuck(ProgramTest):
    def test_a_library_that_waits_by_itself_is_named(self):
        library = self.build(OWN_CALLS, "libown.so", flags=["-shared", "-fPIC"])
        program = self.build(USES_THEM, "uses", flags=["-Wl,--no-as-needed", library, f"-Wl,-rpath,{self.folder}"])
        done = self.slalom("run", "--schedules", 1, "--", program, codes=(2,))
        self.assertIn("main waits for another thread in libown.so, by a system call of its own", done.stderr)

    def test_no_execution_is_no_success(self):
        program = self.build(SPINS)
        for limit in (("--time", "2s"), ("--schedules", 2), ("--strategy", "random", "--schedules", 1000)):
            done = self.slalom("run", "--patience", 1, "--out", "", *limit, "--", program, codes=(2,))
            self.assertIn("nothing could be executed in 0 executions", done.stdout)
            self.assertIn("ran for 1 seconds without an operation", done.stderr)

    def test_ends_when_asked_to(self):
        program = self.build(SPINS)
        for asked, state in ((signal.SIGTERM, ()), (signal.SIGINT, ("--state", self.folder / "search"))):
            command = [SLALOM, "run", "--patience", "3600", "--out", "", *state, "--", program]
            search = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            children = Path(f"/proc/{search.pid}/task/{search.pid}/children")
            while not self.executes(children):
                time.sleep(0.01)
            search.send_signal(asked)
            output, _ = search.communicate(timeout=60)
            self.assertEqual(search.returncode, 2, output)  # no execution reached its end
            self.assertIn("interrupted", output)

    @staticmethod
    def executes(children):
        """Returns whether there is an execution: a child of the process that slalom has started."""
        zygotes = [Path(f"/proc/{pid}/task/{pid}/children") for pid in children.read_text().split()]
        return any(zygote.exists() and zygote.read_text() for zygote in zygotes)


if __name__ == "__main__":
    unittest.main()
