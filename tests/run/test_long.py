"""Programs whose executions are long or endless: slalom shrinks and replays findings within limits, and reports the limits."""

import unittest

from support import ProgramTest, two_threads

FOR_EVER = two_threads("static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;",
                       "for (;;) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }", "return 0;")
# A lost update at the end of two long computations. More than half of the accesses come after most switches.
LATE = two_threads("static int words[2][8000], next, x;\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;", """
  pthread_mutex_lock(&lock);
  int *mine = words[next++];
  pthread_mutex_unlock(&lock);
  for (int i = 1; i < 8000; i++) mine[i] = mine[i - 1] + i;
  int before = x;
  x = before + 1;""", "assert(x == 2);")
CUT_SHORT = "not shrunk to the end, since its executions are long"


class Long(ProgramTest):
    def report(self, steps):
        program = self.build(FOR_EVER)
        done = self.slalom("run", "--full", "--strategy", "random", "--schedules", 1, "--max-steps", steps, "--", program, codes=(1,))
        return " ".join(done.stdout.split())

    def test_few_long_executions_are_made(self):
        text = self.report(20_000)
        self.assertIn(CUT_SHORT, text)
        self.assertIn("Replayed 2/2 (no more, since its executions are long): the same bug every time.", text)

    def test_short_ones_are_shrunk_and_replayed(self):
        text = self.report(400)
        self.assertNotIn("executions are long", text)
        self.assertIn("Replayed 10/10: the same bug every time.", text)

    def test_a_bug_at_the_end_of_a_long_execution_is_shrunk(self):
        program = self.build(LATE, flags=["-fsanitize=thread"])
        done = self.slalom("run", "--strategy", "random", "--schedules", 300, "--", program, codes=(1,))
        text = " ".join(done.stdout.split())
        self.assertIn("minimum: no schedule with fewer preemptions shows it", text)
        self.assertEqual(text.count("- preempted -|"), 1, done.stdout)
        self.assertIn("Replayed 10/10: the same bug every time.", text)


if __name__ == "__main__":
    unittest.main()
