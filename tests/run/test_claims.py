"""The claims of a search: a search with executions that were cut off, or with code that is not seen or not controlled, is never
called exhausted."""

import json
import subprocess
import unittest

from support import ProgramTest, two_threads

SEEN = "-fsanitize=thread"

# main() works on an array while a thread exists. It makes AFTER accesses if the thread has run first (or in any case).
LONG = """#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int came;
static volatile int data[1000];
static void *come(void *unused) {
  pthread_mutex_lock(&lock);
  came = 1;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, come, 0);
  pthread_mutex_lock(&lock);
  const int first = came;
  pthread_mutex_unlock(&lock);
  if (first || ALWAYS)
    for (int i = 0; i < 1000; ++i) data[i] = i;
  pthread_join(thread, 0);
}
"""

# The signal can come between the test of the flag and the wait, but the search does not switch there.
FLAG = """#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_ready = PTHREAD_COND_INITIALIZER;
static int ready;
static void *set(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  ready = 1;
  pthread_cond_signal(&is_ready);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, set, 0);
  pthread_mutex_lock(&lock);
  if (ready == 2) pthread_cond_wait(&is_ready, &lock);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, 0);
}
"""

RACING = two_threads("static int counter;", "const int value = counter; counter = value + 1;", "assert(counter <= 2);")

# Forks where the thread comes in the middle of main()'s rounds: executions at random, before the search, do not show that.
FORKS = """#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, came_in;
static void *come(void *unused) {
  pthread_mutex_lock(&lock);
  came_in = rounds;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, come, 0);
  for (int i = 0; i < 40; ++i) {
    pthread_mutex_lock(&lock);
    ++rounds;
    pthread_mutex_unlock(&lock);
  }
  pthread_join(thread, 0);
  if (came_in == 20 && fork() == 0) _exit(0);
  wait(0);
}
"""


class Claims(ProgramTest):
    def search(self, program, *options, codes=(0, 1)):
        done = self.slalom("run", "--json", "--out", "", "--workers", 1, *options, "--", program, codes=codes)
        result = json.loads(done.stdout)
        return result, {caveat["kind"] for caveat in result["caveats"]}, done

    def test_executions_that_are_all_cut_off_claim_nothing(self):
        program = self.build(LONG, "long", flags=[SEEN, "-DALWAYS=1"])
        for strategy in ("dfs", "dpor:coarse", "portfolio"):
            with self.subTest(strategy):
                limits = ("--strategy", strategy, "--schedules", 20, "--max-steps", 300, "--detectors", "failure,race")
                result, kinds, done = self.search(program, *limits, codes=(2,))
                self.assertEqual((result["executions"], result["findings"], result["exhausted"]), (0, [], False))
                self.assertIn("step-limit", kinds)
                self.assertIn("no execution reached its end", result["coverage"]["statement"])
                self.assertNotIn("every", result["coverage"]["statement"])
                self.assertIn("cut off after 300 steps; allow more with --max-steps", done.stderr)
        told = self.slalom("run", "--out", "", *limits, "--junit", "long.xml", "--", program, codes=(2,))
        self.assertIn("nothing reached its end", told.stdout)
        self.assertNotIn("xhausted", told.stdout)
        self.assertIn("<error", (self.folder / "long.xml").read_text())
        self.assertEqual(self.search(program, "--strategy", "dfs")[0]["exhausted"], True)

    def test_executions_of_which_some_are_cut_off(self):
        program = self.build(LONG, "sometimes", flags=[SEEN, "-DALWAYS=0"])
        for strategy in ("dfs", "dpor:coarse"):
            result, kinds, _ = self.search(program, "--strategy", strategy, "--max-steps", 300, "--detectors", "failure,race")
            self.assertGreater(min(result["executions"], result["truncated"]), 0)
            self.assertEqual((result["exhausted"], kinds), (False, {"step-limit"}))
            self.assertRegex(result["coverage"]["statement"], r"executed, except what follows in \d+ executions? that w\w+ cut off after 300 steps")

    def test_a_flag_that_is_not_seen(self):
        program = self.build(FLAG, "flag")
        for strategy in ("dfs", "dfs:bound=none", "dfs:limit=2", "dpor:coarse"):
            result, kinds, _ = self.search(program, "--strategy", strategy)
            self.assertEqual((result["end"], result["findings"], result["exhausted"]), ("done", [], False))
            self.assertIn("accesses-not-seen", kinds)
        told = self.slalom("run", "--out", "", "--strategy", "dfs", "--", program).stdout
        self.assertNotIn("xhausted", told)

    def test_a_file_or_library_that_was_built_otherwise(self):
        (self.folder / "other.c").write_text("int shared; int use(void) { return ++shared; }\n")
        flags = ["gcc", "-g", "-O1", "-fPIC", self.folder / "other.c"]
        subprocess.run([*flags, "-c", "-o", self.folder / "other.o"], check=True)
        subprocess.run([*flags, "-c", SEEN, "-o", self.folder / "other-seen.o"], check=True)
        subprocess.run([*flags, "-shared", "-o", self.folder / "libother.so"], check=True)
        user = two_threads("int use(void);", "use();", "")
        for name, with_file, part in (("mixed", "other.o", "other.c"), ("linked", "libother.so", "libother.so"), ("all", "other-seen.o", None)):
            program = self.build(user, name, flags=[SEEN, self.folder / with_file, f"-Wl,-rpath,{self.folder}"])
            result, kinds, _ = self.search(program, "--strategy", "dfs", "--choices", "everywhere", "--detectors", "failure")
            self.assertEqual((result["exhausted"], kinds), (part is None, {"accesses-partly-seen"} if part else set()))
            self.assertEqual(bool(part) and f"orders of memory accesses in {part}" in result["coverage"]["statement"], bool(part))

    def test_races_that_nobody_looks_for(self):
        program = self.build(RACING, "racing", flags=[SEEN])
        options = ("--strategy", "dfs", "--keep-going", "--no-shrink")
        for detectors, exhausted in (("failure", False), ("failure,race", True)):
            result, kinds, _ = self.search(program, *options, "--detectors", detectors)
            self.assertEqual((result["exhausted"], "races-ignored" in kinds), (exhausted, not exhausted))
        everywhere, kinds, _ = self.search(program, *options, "--detectors", "failure", "--choices", "everywhere")
        self.assertEqual((everywhere["exhausted"], kinds), (True, set()))
        blocked, kinds, _ = self.search(program, *options, "--choices", "nowhere")
        self.assertEqual((blocked["exhausted"], kinds), (False, {"blocked-only"}))

    def test_what_is_not_controlled_is_known_when_a_search_goes_on(self):
        program = self.build(FORKS, "forks", flags=[SEEN])
        for resumed in (False, True):
            result, kinds, _ = self.search(program, "--strategy", "dfs:limit=1", "--state", "state")
            self.assertEqual((result["exhausted"], result["resumed"] > 0), (False, resumed))
            self.assertIn("uncontrolled", kinds)
            self.assertTrue(any("the program forks" in words for words in result["uncontrolled"]))

    def test_time_limits_that_come_last(self):
        result, kinds, _ = self.search(self.build(RACING, "racing", flags=[SEEN]), "--strategy", "dfs:limit=1", "--keep-going", "--timeouts", "idle")
        self.assertEqual((result["exhausted"], kinds), (True, {"bound", "idle-timeouts"}))
        self.assertIn("--timeouts idle", result["coverage"]["statement"])


if __name__ == "__main__":
    unittest.main()
