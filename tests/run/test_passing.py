"""The target continues without asking if it knows which thread the search will choose. Tests the savings, counted in switches
between processes and threads, and that replays, which ask at every stop, execute the same schedules."""

import json
import resource
import subprocess
import unittest

from support import SLALOM, ProgramTest

# Several ways to wait, a choice of the thread to wake, a thread made by another thread, a yield, and reads whose order shows.
MIXED = r"""
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t ready;
static int tickets, order;
static void fold(int who) {
  pthread_mutex_lock(&lock);
  order = order * 7 + who;
  pthread_mutex_unlock(&lock);
}
static void *taker(void *who) {
  pthread_mutex_lock(&lock);
  while (tickets == 0) pthread_cond_wait(&changed, &lock);
  --tickets;
  pthread_mutex_unlock(&lock);
  fold((int)(long)who);
  sem_post(&ready);
  return 0;
}
static void *giver(void *who) {
  pthread_t taking;
  pthread_create(&taking, 0, taker, (void *)3);
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&lock);
    ++tickets;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    if (YIELDS) sched_yield();
  }
  pthread_barrier_wait(&barrier);
  fold((int)(long)who);
  pthread_join(taking, 0);
  return 0;
}
int main(void) {
  pthread_t threads[3];
  pthread_barrier_init(&barrier, 0, 2);
  pthread_create(&threads[0], 0, taker, (void *)1);
  pthread_create(&threads[1], 0, taker, (void *)2);
  pthread_create(&threads[2], 0, giver, (void *)4);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 3; ++i) sem_wait(&ready);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  if (!FAILS) return 0;
  char text[32];
  snprintf(text, sizeof text, "order %d", order);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""


# More records than fit into the memory shared with slalom; about a third of them about agents that wait for something else now.
PING_PONG = r"""
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static void *play(void *me) {
  for (int i = 0; i < 1500; ++i) {
    pthread_mutex_lock(&lock);
    while (turn != (int)(long)me) pthread_cond_wait(&changed, &lock);
    turn = !turn;
    pthread_cond_broadcast(&changed);
    if (i % 7 == 0) pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return 0;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, play, (void *)1);
  play(0);
  return pthread_join(other, 0);
}
"""


class Passing(ProgramTest):
    def test_goes_on_when_there_is_more_to_tell_than_room(self):
        program = self.build(PING_PONG)
        for strategy in ("dfs", "pct", "random"):
            found = self.run_json(program, "--strategy", strategy, "--schedules", 6, "--out", "")
            self.assertEqual((found["executions"], found["findings"], found["trouble"]), (6, [], []), strategy)
            self.assertGreater(found["steps"], 6 * 6000)

    def test_saves_switches(self):
        program = self.build(MIXED, flags=["-DYIELDS=0", "-DFAILS=0"])
        for strategy, most in (("dfs", 0.8), ("pct", 0.8), ("pos", 0.9), ("random", 1.1)):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
            done = subprocess.run([SLALOM, "run", "--json", "--out", "", "--workers", "1", "--strategy", strategy,
                                   "--schedules", "200", "--", program],
                                  capture_output=True, text=True, timeout=100)
            switches = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before
            points = json.loads(done.stdout)["choice_points"]
            self.assertGreater(points, 200 * 20)
            # Asking mostly costs two switches per stop.
            self.assertLess(switches, most * points, strategy)

    def test_replays_find_the_same(self):
        for yields in (0, 1):
            program = self.build(MIXED, flags=[f"-DYIELDS={yields}", "-DFAILS=1"])
            for strategy in ("random", "pct", "pos", "surw", "dfs", "portfolio"):
                found = self.run_json(program, "--strategy", strategy, "--schedules", 60, "--keep-going", "--no-shrink",
                                      "--out", f"{strategy}{yields}")["findings"]
                self.assertGreater(len(found), 3, strategy)
                for finding in found[:4]:
                    self.assertIn("order", finding["title"])
                    replay = json.loads(self.slalom("replay", finding["capsule"], "--json", codes=[1]).stdout)
                    self.assertTrue(replay["same"], (strategy, finding))


if __name__ == "__main__":
    unittest.main()
