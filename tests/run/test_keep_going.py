"""Errors after the first failure or race: --keep-going continues past both."""

import unittest

from support import ProgramTest, two_threads

# A lost update in the rounds ends the execution. The ones at the end can only be lost if no earlier one is.
TWO_BUGS = """#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter, late;
static int get(int *p) {
  pthread_mutex_lock(&lock);
  int value = *p;
  pthread_mutex_unlock(&lock);
  return value;
}
static void set(int *p, int value) {
  pthread_mutex_lock(&lock);
  *p = value;
  pthread_mutex_unlock(&lock);
}
static void *run(void *unused) {
  for (int i = 0; i < 10; ++i) {
    int n = get(&counter);
    set(&counter, n + 1);
    assert(get(&counter) == n + 1);
  }
  set(&late, get(&late) + 1);
  return unused;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; ++i) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  assert(late > 1);
}
"""
RACE = two_threads("static int counter;", "counter = counter + 1;", "assert(counter == 2);")


class KeepGoing(ProgramTest):
    def search(self, program, *arguments):
        found = self.run_json(program, "--no-shrink", "--out", "", *arguments)
        return found, [finding["title"] for finding in found["findings"]]

    def test_a_failure_that_hides_another(self):
        program = self.build(TWO_BUGS, name="two")
        first, titles = self.search(program)
        self.assertEqual((first["end"], len(titles)), ("first failure", 1))
        both, titles = self.search(program, "--keep-going", "--schedules", 1500)
        self.assertEqual([("late > 1" in title, "counter" in title) for title in titles], [(False, True), (True, False)])
        # Executions that fail early cover none of the later code. A caveat says how many there were.
        early = sum(finding["occurrences"] for finding in both["findings"])
        [caveat] = [caveat["text"] for caveat in both["caveats"] if caveat["kind"] == "behind-failures"]
        self.assertEqual(caveat, f"what comes after the failures that ended {early} of {both['executions']} executions")
        self.assertRegex(both["coverage"]["statement"], r"detour: \d+ executions repeated an earlier one in part")

    def test_a_race_that_hides_a_failure(self):
        program = self.build(RACE, name="race", flags=["-fsanitize=thread"])
        first, titles = self.search(program, "--strategy", "dfs", "--fail-on", "race", "--schedules", 1)
        self.assertEqual((first["end"], {title.split()[0] for title in titles}), ("first failure", {"data"}))
        both, titles = self.search(program, "--fail-on", "race", "--keep-going", "--schedules", 200)
        self.assertIn("assertion", [title.split()[0] for title in titles])
        self.assertNotEqual(both["end"], "first failure")


if __name__ == "__main__":
    unittest.main()
