"""slalom replay --gdb: a stock gdb stops where the bug shows, with all threads where the schedule put them, and can run a
thread until it is preempted."""

import re
import shutil
import unittest

from support import ProgramTest

LOST_UPDATE = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static int get(void) {
  pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  return value;
}
static void set(int value) {
  pthread_mutex_lock(&lock);
  counter = value;
  pthread_mutex_unlock(&lock);
}
static void *add(void *unused) {
  int value = get();
  set(value + 1);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counter == 2);
}
"""
DEADLOCK = r"""
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static void both(pthread_mutex_t *one, pthread_mutex_t *other) {
  pthread_mutex_lock(one);
  pthread_mutex_lock(other);
  pthread_mutex_unlock(other);
  pthread_mutex_unlock(one);
}
static void *backwards(void *unused) {
  both(&second, &first);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, backwards, 0);
  both(&first, &second);
  pthread_join(thread, 0);
}
"""


@unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
class Gdb(ProgramTest):
    def debug(self, text, *commands, begin="--gdb"):
        program = self.build(text)
        capsule = self.run_json(program, "--out", "findings")["findings"][0]["capsule"]
        words = [word for command in commands for word in ("--gdb-command", command)]
        done = self.slalom("replay", capsule, begin, *words, codes=(1,))
        self.assertIn("the same again", done.stdout)
        return done.stdout

    def test_stops_at_a_failed_assertion(self):
        output = self.debug(LOST_UPDATE, "bt", "print counter", "info threads")
        self.assertIn("slalom: counter == 2", output)
        self.assertRegex(output, r"main \(\) at .*prog\.c:28")
        self.assertIn("$1 = 1", output)
        self.assertEqual(len(re.findall(r"^\*? +\d +Thread ", output, re.M)), 3)

    def test_stops_at_a_deadlock_with_all_threads_in_it(self):
        output = self.debug(DEADLOCK, "thread apply all bt")
        self.assertIn("slalom: nobody can go on", output)
        self.assertEqual(len(re.findall(r"both \(.*\) at .*prog\.c:6", output)), 2)

    def test_runs_a_thread_until_it_is_preempted(self):
        # One thread has read the counter and not yet written it when the other one goes on.
        output = self.debug(LOST_UPDATE, *["next-switch"] * 2, "thread apply all bt", "continue", begin="--gdb-start")
        at_switch = output[:output.rindex("slalom: counter == 2")]
        self.assertIn("slalom_switched", at_switch)
        self.assertRegex(at_switch, r"main \(\) at .*prog\.c:2[56]")
        self.assertIn("slalom: counter == 2", output)


if __name__ == "__main__":
    unittest.main()
