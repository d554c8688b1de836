"""Programs that never come to an end that slalom could see: a search of them fails, soon, whatever its limits are."""

import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import SLALOM, ProgramTest

# It waits by reading memory, which is not seen.
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


class Stuck(ProgramTest):
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
            self.assertEqual(search.returncode, 0, output)
            self.assertIn("interrupted", output)

    @staticmethod
    def executes(children):
        """Is there an execution, a child of the process that slalom has started?"""
        zygotes = [Path(f"/proc/{pid}/task/{pid}/children") for pid in children.read_text().split()]
        return any(zygote.exists() and zygote.read_text() for zygote in zygotes)


if __name__ == "__main__":
    unittest.main()
