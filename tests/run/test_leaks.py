"""Leaks of programs, and ends of a search: memory leaks (on request), threads that were not joined, and races that end the
search."""

import unittest

from support import ProgramTest

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long shared;
static _Thread_local void *volatile kept;
static void *work(void *unused) {
  long *room = malloc(sizeof *room);
  *room = 1;
  kept = room;
  LOCK(pthread_mutex_lock(&lock);)
  shared += *room;
  LOCK(pthread_mutex_unlock(&lock);)
  FREE(free(room);)
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  JOIN(pthread_join(b, 0);)
  return 0;
}
"""


class Leaks(ProgramTest):
    def search(self, *without, options=()):
        flags = [f"-D{word}(x)={'' if word in without else 'x'}" for word in ("LOCK", "FREE", "JOIN")]
        program = self.build(PROGRAM, flags=["-fsanitize=thread", *flags])
        found = self.run_json(program, "--out", "", "--schedules", 200, "--keep-going", "--strategy", "random", *options)
        self.assertEqual(found["trouble"], [])
        return found, {finding["kind"]: finding for finding in found["findings"]}

    def test_nothing_is_left(self):
        _, kinds = self.search(options=("--detectors", "all"))
        self.assertEqual(kinds, {})

    def test_memory(self):
        _, kinds = self.search("FREE")
        self.assertEqual(kinds, {})  # not requested
        _, kinds = self.search("FREE", options=("--detectors", "default,leak"))
        self.assertEqual(list(kinds), ["leak"])
        self.assertIn("prog.c:8 (work)", kinds["leak"]["title"])

    def test_thread(self):
        _, kinds = self.search("JOIN", "FREE")
        self.assertEqual(kinds, {})  # not requested
        _, kinds = self.search("JOIN", "FREE", options=("--detectors", "default,thread-leak"))
        self.assertEqual(list(kinds), ["leak"])
        self.assertIn("leak of thread work started at prog.c:20 (main)", kinds["leak"]["title"])
        self.assertEqual(kinds["leak"]["severity"], "suspicion")

    def test_leaks_that_are_asked_for_count(self):
        for kept, detector in (("JOIN", "thread-leak"), ("FREE", "leak")):
            flags = [f"-D{name}(x)=" + ("" if name == kept else "x") for name in ("LOCK", "FREE", "JOIN")]
            program = self.build(PROGRAM, flags=["-fsanitize=thread", *flags])
            command = ("run", "--out", "", "--schedules", 50)
            self.slalom(*command, "--", program, codes=(0,))
            self.slalom(*command, "--detectors", f"default,{detector}", "--", program, codes=(1,))

    def test_a_race_ends_the_search_where_it_counts(self):
        program = self.build(PROGRAM, flags=["-fsanitize=thread", "-DLOCK(x)=", "-DFREE(x)=x", "-DJOIN(x)=x"])
        ended = {}
        for options in ((), ("--fail-on", "race")):
            found = self.run_json(program, "--out", "", "--schedules", 200, "--strategy", "random", *options)
            self.assertEqual({finding["kind"] for finding in found["findings"]}, {"data-race"})
            ended[options] = (found["end"], found["executions"])
        self.assertEqual(ended[()], ("schedule limit", 200))
        self.assertEqual(ended[("--fail-on", "race")][0], "first failure")
        self.assertLess(ended[("--fail-on", "race")][1], 100)


if __name__ == "__main__":
    unittest.main()
