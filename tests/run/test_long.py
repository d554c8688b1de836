"""Programs that run for ever: the work on a finding is limited, and the report says so."""

import unittest

from support import ProgramTest, two_threads

FOR_EVER = two_threads("static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;",
                       "for (;;) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }", "return 0;")
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


if __name__ == "__main__":
    unittest.main()
