"""A search learns while it runs: it finds races at places that it could not see before, and a saved search keeps these places."""

import unittest

from support import ProgramTest, line_of, two_threads

# The race comes after more accesses than the executions that precede a search examine.
LATE = two_threads("int table[2][7000]; int x;",
                   "int *p = table[unused != 0]; for (int i = 1; i < 7000; i++) p[i] = p[i - 1] + i; int v = x; x = v + 1;",
                   "assert(x == 2); return 0;").replace("&b, 0, add, 0", "&b, 0, add, &b")

RACES = """#include <pthread.h>
int x, y;
static void *add(void *unused) {
  for (int i = 0; i < 4; i++) { x++; y += x; }
  return unused;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, add, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
}
"""


class Restart(ProgramTest):
    def test_new_races_make_the_search_begin_anew(self):
        program = self.build(LATE, name="late", flags=["-fsanitize=thread"])
        result = self.run_json(program, "--no-shrink", "--out", "", "--schedules", 600)
        self.assertIn("assertion", [finding["kind"] for finding in result["findings"]])
        self.assertIn(f"prog.c:{line_of(LATE, 'assert(x')}".replace("prog", "late"), result["findings"][0]["title"])

    def test_a_saved_search_knows_the_places_that_it_has_learned(self):
        program = self.build(RACES, name="races", flags=["-fsanitize=thread"])
        for strategy in ("pos", "portfolio"):
            def search(schedules, *state):
                result = self.run_json(program, "--strategy", strategy, "--no-shrink", "--out", "", "--schedules", schedules, *state)
                return {key: result[key] for key in ("executions", "classes", "choice_points", "steps", "findings")}

            # Whole rounds: the next round uses the results of the one before.
            self.assertNotEqual(search(192, "--state", strategy), search(384))
            self.assertEqual(search(384, "--state", strategy), search(384), strategy)


if __name__ == "__main__":
    unittest.main()
