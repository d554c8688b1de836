"""Replay of plain memory accesses: threads that read and write each other's variables without any synchronisation see the same
values in every replay of a schedule, and other values in other schedules."""

import json
import unittest

from support import ProgramTest

# Every value that any thread reads contributes to the number that the program fails with.
RACY = r"""
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#define THREADS 4
static int cells[THREADS];
static uint64_t seen[THREADS];
static void *work(void *argument) {
  uintptr_t me = (uintptr_t)argument;
  uint64_t mine = me + 1;
  for (int i = 0; i < 6; ++i) {
    cells[me] = cells[(me + 1) % THREADS] + (int)me + i;
    for (int k = 0; k < THREADS; ++k) mine = (mine ^ (uint64_t)cells[k]) * 0x100000001b3u;
  }
  seen[me] = mine;
  return NULL;
}
int main(void) {
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, (void *)i);
  uint64_t all = 1;
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    all = (all ^ seen[i]) * 0x100000001b3u;
  }
  char text[64];
  snprintf(text, sizeof text, "signature %016lx", all);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""


class RacyReads(ProgramTest):
    def test_signatures(self):
        program = self.build(RACY, "racy", flags=["-fsanitize=thread"])
        search = ["--strategy", "random", "--schedules", 40, "--keep-going", "--no-shrink", "--detectors", "failure", "--choices", "everywhere"]
        found = self.run_json(program, *search)["findings"]
        self.assertEqual(len({finding["title"] for finding in found}), 40, "each schedule has a signature of its own")
        for finding in found[:2]:
            replay = self.slalom("replay", finding["capsule"], "--json", "--times", 100, codes=[1])
            self.assertTrue(json.loads(replay.stdout)["same"])


if __name__ == "__main__":
    unittest.main()
