"""slalom replay --gdb: a stock gdb stops where the bug shows, with all threads where the schedule put them, and can run a
thread until it is preempted."""

import re
import shutil
import unittest

from support import LOST_UPDATE, ProgramTest, line_of, two_threads

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
RACE = two_threads("static int counter;", "++counter;", "return 0;")
FREED = r"""
#include <pthread.h>
#include <stdlib.h>
static int *shared;
static void *look(void *unused) {
  *(volatile int *)shared = 1;
  return unused;
}
int main(void) {
  pthread_t thread;
  shared = malloc(sizeof *shared);
  pthread_create(&thread, 0, look, 0);
  free(shared);
  pthread_join(thread, 0);
}
"""


@unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
class Gdb(ProgramTest):
    def debug(self, text, *commands, begin="--gdb", kind=None):
        program = self.build(text, flags=["-fsanitize=thread"] if kind else [])
        found = self.run_json(program, "--out", "findings", "--schedules", 300)["findings"]
        capsule = next(finding["capsule"] for finding in found if kind in (None, finding["kind"]))
        words = [word for command in commands for word in ("--gdb-command", command)]
        done = self.slalom("replay", capsule, begin, *words, codes=(1,))
        self.assertIn("the same again", done.stdout)
        return done.stdout

    def test_stops_at_a_failed_assertion(self):
        output = self.debug(LOST_UPDATE, "bt", "print counter", "info threads")
        self.assertIn("slalom: counter == 2", output)
        self.assertRegex(output, rf"main \(\) at .*prog\.c:{line_of(LOST_UPDATE, 'assert(counter')}\b")
        self.assertIn("$1 = 1", output)
        self.assertEqual(len(re.findall(r"^\*? +\d +Thread ", output, re.M)), 3)

    def test_stops_at_a_deadlock_with_all_threads_in_it(self):
        output = self.debug(DEADLOCK, "thread apply all bt")
        self.assertIn("slalom: nobody can go on", output)
        self.assertEqual(len(re.findall(r"both \(.*\) at .*prog\.c:6", output)), 2)

    def test_stops_at_a_data_race(self):
        output = self.debug(RACE, "bt", "info threads", kind="data-race")
        self.assertIn("slalom: the last step of the finding", output)
        self.assertRegex(output, rf"add \(.*\) at .*prog\.c:{line_of(RACE, '++counter')}\b")
        self.assertEqual(len(re.findall(r"^\*? +\d +Thread ", output, re.M)), 3)

    def test_stops_at_a_use_after_free(self):
        output = self.debug(FREED, "bt", kind="use-after-free")
        self.assertIn("slalom: the last step of the finding", output)
        self.assertRegex(output, rf"look \(.*\) at .*prog\.c:{line_of(FREED, '= 1;')}\b")

    def test_runs_a_thread_until_it_is_preempted(self):
        # One thread has read the counter but not yet written it when the other thread runs.
        output = self.debug(LOST_UPDATE, *["next-switch"] * 2, "thread apply all bt", "continue", begin="--gdb-start")
        self.assertIn("slalom: counter == 2", output)
        at_switch = output[:output.rindex("slalom: counter == 2")]
        self.assertIn("slalom_switched", at_switch)
        self.assertRegex(at_switch, rf"main \(\) at .*prog\.c:{line_of(LOST_UPDATE, 'join(a')}\b")


if __name__ == "__main__":
    unittest.main()
