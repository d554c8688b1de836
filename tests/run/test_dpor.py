"""Reduction on programs: what it claims to have exhausted, it has."""

import unittest
from pathlib import Path

from support import ProgramTest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "programs"

# What is wrong is in a thread that may never begin, since the program ends before it.
ENDS_EARLY = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *work(void *unused) {
  pthread_mutex_lock(&lock);
#ifndef FIXED
  assert(done);
#endif
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_detach(thread);
  return 0;
}
"""


class Dpor(ProgramTest):
    def explore(self, *flags):
        program = self.build(ENDS_EARLY, "ends" + "_fixed" * len(flags), flags=flags)
        return self.run_json(program, "--strategy", "dpor", "--choices", "everywhere", "--no-shrink", "--keep-going")

    def test_a_program_that_ends_before_its_threads(self):
        result = self.explore()
        self.assertEqual([finding["kind"] for finding in result["findings"]], ["assertion"])

    def test_its_twin(self):
        result = self.explore("-DFIXED")
        self.assertEqual(result["findings"], [])
        self.assertTrue(result["exhausted"])

    def test_a_time_limit_that_may_come_first_is_not_exhausted(self):
        program = self.build((EXAMPLES / "timed_wait.cc").read_text(), "timed", suffix=".cc", flags=["-DFIXED"])
        result = self.run_json(program, "--strategy", "dpor", "--choices", "everywhere", "--no-shrink")
        self.assertFalse(result["exhausted"])


if __name__ == "__main__":
    unittest.main()
