"""As many threads as the documentation promises, in a program that fails: the failure is shrunk and replayed like others."""

import unittest

from support import ProgramTest

FAILS = r"""
#include <assert.h>
#include <pthread.h>
#include <sched.h>
static void *yield(void *unused) {
  sched_yield();
  return unused;
}
int main(void) {
  static pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], 0, yield, 0) != 0) return 0;
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], 0);
  assert(!"all were there");
}
"""


class ManyThreadsTest(ProgramTest):
    def check(self, threads, *arguments):
        program = self.build(FAILS, f"threads{threads}", flags=[f"-DTHREADS={threads}"])
        answer = self.run_json(program, "--schedules", 1, *arguments)
        self.assertEqual([finding["kind"] for finding in answer["findings"]], ["assertion"])

    def test_three_hundred(self):
        self.check(300)

    def test_the_most(self):
        self.check(1023, "--no-shrink")


if __name__ == "__main__":
    unittest.main()
