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

# One thread after the other, more than there is room for.
SHORT_LIVED = r"""
#include <assert.h>
#include <pthread.h>
static void *nothing(void *unused) { return unused; }
int main(void) {
  for (int i = 0; i < 1100; ++i) {
    pthread_t thread;
    int failed = pthread_create(&thread, 0, nothing, 0);
    if (COPES && failed) return 0;
    assert(!failed);
    pthread_join(thread, 0);
  }
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

    def test_more_than_the_most_is_no_bug(self):
        for copes, code in ((0, 2), (1, 0)):
            program = self.build(SHORT_LIVED, f"short{copes}", flags=[f"-DCOPES={copes}"])
            done = self.slalom("run", "--out", "", "--strategy", "random", "--schedules", 2, "--", program, codes=(code,))
            self.assertIn("than slalom can control", done.stdout + done.stderr)
            self.assertIn("nothing", done.stdout)


if __name__ == "__main__":
    unittest.main()
