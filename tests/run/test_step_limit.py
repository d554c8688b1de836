"""Programs whose executions are longer than the usual step limit: slalom finds a limit by itself."""

import json
import unittest

from support import ProgramTest, two_threads

SEEN = ["-fsanitize=thread"]
COMPUTE = two_threads("static int words[2][30000]; static int next;\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;", """
  pthread_mutex_lock(&lock);
  int *mine = words[next++];
  pthread_mutex_unlock(&lock);
  for (int round = 0; round < 2; round++)
    for (int i = 1; i < 30000; i++) mine[i] = mine[i - 1] + i;""", "return 0;")
LENGTH = 2 * 2 * 2 * 29_999  # accesses of the loops

# In the default order the first thread finds nothing to do.
WORK_LATER = """#include <pthread.h>
static int words[150000], ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *use(void *unused) {
  pthread_mutex_lock(&lock);
  int go = ready;
  pthread_mutex_unlock(&lock);
  if (go)
    for (int i = 1; i < 150000; i++) words[i] = words[i - 1] + 1;
  return unused;
}
static void *make(void *unused) {
  pthread_mutex_lock(&lock);
  ready = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, use, 0);
  pthread_create(&b, 0, make, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return 0;
}
"""
# A loop of which nothing shows that it never ends.
COUNT = two_threads("static long counts[2]; static int next;\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;", """
  pthread_mutex_lock(&lock);
  volatile long *mine = &counts[next++];
  pthread_mutex_unlock(&lock);
  for (;;) ++*mine;""", "return 0;")
SPIN = two_threads("#include <stdatomic.h>\nstatic atomic_int flag;", "while (!atomic_load(&flag)) continue;", "return 0;")


class StepLimit(ProgramTest):
    def search(self, program, *arguments, codes=(0,)):
        return json.loads(self.slalom("run", "--json", "--out", "", *arguments, "--", program, codes=codes).stdout)

    def test_a_long_program_needs_no_option(self):
        program = self.build(COMPUTE, flags=SEEN)
        done = self.slalom("run", "--strategy", "random", "--schedules", 3, "--", program, codes=(0,))
        text = " ".join(done.stdout.split())
        self.assertIn("nothing found in 3 executions", text)
        self.assertIn("step limit: 970,000 for each execution, since one that was made first took 240,0", text)
        result = self.search(program, "--strategy", "dfs")
        self.assertEqual((result["truncated"], result["end"], result["exhausted"]), (0, "done", True))

    def test_the_limit_is_the_same_on_any_number_of_workers(self):
        program = self.build(COMPUTE, flags=SEEN)
        results = [self.search(program, "--strategy", "random", "--schedules", 4, "--workers", workers) for workers in (1, 3)]
        for result in results:
            self.assertEqual(result["max_steps"], 970_000)
            self.assertGreater(result["max_steps"], 4 * LENGTH)
        self.assertEqual(results[0]["steps"], results[1]["steps"])

    def test_a_search_that_goes_on_has_the_same_limit(self):
        program = self.build(COMPUTE, flags=SEEN)
        for schedules, resumed in ((3, 0), (5, 3)):
            result = self.search(program, "--strategy", "random", "--schedules", schedules, "--state", "saved")
            self.assertEqual((result["max_steps"], result["executions"], result["resumed"]), (970_000, schedules, resumed))

    def test_the_users_limit_stays(self):
        program = self.build(COMPUTE, flags=SEEN)
        done = self.slalom("run", "--strategy", "random", "--schedules", 3, "--max-steps", 100_000, "--", program, codes=(2,))
        self.assertIn("all 3 were cut off after 100,000 steps", done.stderr)

    def test_the_longer_of_two_orders_counts(self):
        program = self.build(WORK_LATER, flags=SEEN)
        result = self.search(program, "--strategy", "random", "--schedules", 30)
        self.assertEqual(result["truncated"], 0)
        self.assertGreater(result["max_steps"], 4 * 2 * 149_999)

    def test_short_programs_have_the_usual_limit(self):
        program = self.build(two_threads("", "", "return 0;"), flags=SEEN)
        done = self.slalom("run", "--strategy", "random", "--schedules", 3, "--", program, codes=(0,))
        self.assertNotIn("step limit", done.stdout)
        self.assertEqual(self.search(program, "--strategy", "random", "--schedules", 3)["max_steps"], 100_000)

    def test_what_never_ends_is_cut_off_as_before(self):
        done = self.slalom("run", "--strategy", "random", "--schedules", 3, "--", self.build(COUNT, flags=SEEN), codes=(2,))
        self.assertIn("all 3 were cut off after 100,000 steps; allow more with --max-steps", done.stderr)

    def test_a_thread_that_spins_is_noticed_by_the_usual_limit(self):
        program = self.build(SPIN, flags=SEEN)
        result = self.search(program, "--strategy", "random", "--schedules", 1, "--no-shrink", codes=(1,))
        self.assertEqual([finding["kind"] for finding in result["findings"]], ["livelock"])
        self.assertEqual(result["max_steps"], 100_000)


if __name__ == "__main__":
    unittest.main()
