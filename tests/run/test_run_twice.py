"""--run-twice: if a program is not deterministic, the message names the thread, the place, the operation and both values."""

import json
import unittest

from support import ProgramTest, line_of

# A file outlives executions: the number of earlier executions decides which of two locks is taken and what is chosen.
COUNTS = r"""
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t even = PTHREAD_MUTEX_INITIALIZER, odd = PTHREAD_MUTEX_INITIALIZER;
static int count(void) {
  int number = 0;
  FILE *file = fopen("count", "r");
  if (file && fscanf(file, "%d", &number) != 1) number = 0;
  if (file) fclose(file);
  file = fopen("count", "w");
  fprintf(file, "%d", number + 1);
  fclose(file);
  return number;
}
static void *work(void *unused) {
  pthread_mutex_t *lock = count() % 2 ? &odd : &even;
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  if (SPEAKS) fprintf(stderr, "%d\n", count());
}
"""


class RunTwice(ProgramTest):
    def trouble(self, text, *flags):
        program = self.build(text, flags=flags)
        (self.folder / "count").write_text("0")  # a missing file would be missing in the second run as well
        # An execution that differed when it was repeated covers nothing: exit code 2.
        done = self.slalom("run", "--json", "--run-twice", "--workers", 1, "--schedules", 1, "--out", "", "--strategy", "random",
                           "--", program, codes=(0, 2))
        return json.loads(done.stdout)["trouble"]

    def test_the_operation_is_named(self):
        [trouble] = self.trouble(COUNTS, "-DSPEAKS=0")
        place = f"prog.c:{line_of(COUNTS, 'mutex_lock(lock)')} (work)"
        self.assertIn(f"in the first run work#1 did: lock even (value 0) at {place}; in the second work#1 did: lock odd (value 0) at {place}", trouble)

    def test_so_is_what_it_wrote(self):
        [trouble] = self.trouble(COUNTS.replace("count() % 2", "0"), "-DSPEAKS=1")
        self.assertIn("every operation was the same, but not what was left at the end", trouble)

    def test_a_deterministic_program(self):
        self.assertEqual(self.trouble(COUNTS.replace("count() % 2", "0"), "-DSPEAKS=0"), [])


if __name__ == "__main__":
    unittest.main()
