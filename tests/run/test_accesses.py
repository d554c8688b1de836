"""Programs built with -fsanitize=thread: their memory accesses are operations."""

import re
import unittest

from support import ProgramTest

# Two threads add twice to a counter, by a load and a store; the result is the title of the finding.
COUNTER = r"""
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
static %(type)s counter;
static void *add(void *unused) {
  for (int i = 0; i < 2; ++i) %(add)s
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  char text[32];
  snprintf(text, sizeof text, "result %%d", (int)counter);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""
ATOMIC = COUNTER % {"type": "_Atomic int", "add": "counter = counter + 1;"}
PLAIN = COUNTER % {"type": "volatile int", "add": "counter = counter + 1;"}
EXACT = COUNTER % {"type": "_Atomic int", "add": "++counter;"}

LOCKED = r"""
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x, y;
static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  ++x;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  y = 1;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return x == 2 && y == 1 ? 0 : 1;
}
"""


def results(found):
    titles = [finding["title"] for finding in found["findings"] if finding["kind"] == "assertion"]
    return {int(re.search(r"result (\d+)", title).group(1)) for title in titles}


class Accesses(ProgramTest):
    def explore(self, text, name, *options):
        program = self.build(text, name, flags=["-fsanitize=thread"])
        return self.run_json(program, "--keep-going", "--no-shrink", "--out", "", *options)

    def test_atomic_operations_are_choice_points(self):
        found = self.explore(ATOMIC, "atomic", "--strategy", "dfs:limit=2")
        self.assertEqual(results(found), {2, 3, 4})
        self.assertTrue(found["exhausted"])
        self.assertEqual(results(self.explore(EXACT, "exact", "--strategy", "dfs:limit=2")), {4})

    def test_plain_accesses_are_choice_points_everywhere(self):
        options = ("--choices", "everywhere", "--strategy", "random", "--schedules", 500)
        self.assertEqual(results(self.explore(PLAIN, "plain", *options)), {2, 3, 4})

    def test_races(self):
        found = self.explore(PLAIN, "race", "--schedules", 20)
        self.assertIn("data-race", {finding["kind"] for finding in found["findings"]})
        without = self.explore(PLAIN, "race", "--schedules", 20, "--detectors", "failure,deadlock")
        self.assertNotIn("data-race", {finding["kind"] for finding in without["findings"]})
        self.assertEqual(self.explore(LOCKED, "locked", "--schedules", 200)["findings"], [])
        self.assertEqual(self.explore(ATOMIC, "no-race", "--schedules", 20, "--detectors", "race")["findings"], [])


if __name__ == "__main__":
    unittest.main()
