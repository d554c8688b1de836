"""Replay: the same bits every time, in fresh processes, wherever the machine stops to ask; and a clear message if the program has
changed."""

import json
import os
import subprocess
import unittest

from support import LOST_UPDATE, SLALOM, ProgramTest

# Folds everything that the threads can observe (each other, time, addresses, random numbers) into one number, and "fails" with
# it, so that executions that differ have different titles.
SIGNATURE = r"""
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t signature = 1;
static void fold(uint64_t value) { signature = (signature ^ value) * 0x100000001b3u; }
static void *work(void *name) {
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_lock(&lock);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    void *memory = malloc(100);
    uint64_t random;
    getrandom(&random, sizeof random, 0);
    fold((uintptr_t)name);
    fold(now.tv_sec * 1000000000u + now.tv_nsec);
    fold((uintptr_t)memory);
    fold((uintptr_t)&random);
    fold(random);
    fold(gettid());
    fold(getpid());
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}
int main(void) {
  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  char text[64];
  snprintf(text, sizeof text, "signature %016lx", signature);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""

# Takes a recursive mutex twice, and always fails.
TWICE = r"""
#include <assert.h>
#include <pthread.h>
int main(void) {
  pthread_mutexattr_t recursive;
  pthread_mutexattr_init(&recursive);
  pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_t lock;
  pthread_mutex_init(&lock, &recursive);
  pthread_mutex_lock(&lock);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&lock);
  assert(0);
}
"""

# Always fails; the lock and the counter are local variables of main().
ON_STACK = r"""
#include <assert.h>
#include <pthread.h>
struct counter { pthread_mutex_t lock; int value; };
static void *add(void *data) {
  struct counter *counter = data;
  pthread_mutex_lock(&counter->lock);
  ++counter->value;
  pthread_mutex_unlock(&counter->lock);
  return NULL;
}
int main(void) {
  struct counter counter = {PTHREAD_MUTEX_INITIALIZER, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, add, &counter);
  add(&counter);
  pthread_join(thread, NULL);
  assert(counter.value != 2);
}
"""


class Replay(ProgramTest):
    def test_the_second_lock_of_a_recursive_mutex(self):
        finding = self.run_json(self.build(TWICE, "twice"))["findings"][0]
        report = self.slalom("replay", finding["capsule"], "--full", codes=[1]).stdout
        self.assertEqual([words for words in ("held already", "still held", "was taken") if words in report], ["held already", "still held"])

    def test_signatures(self):
        program = self.build(SIGNATURE, "signature")
        found = self.run_json(program, "--strategy", "random", "--schedules", 40, "--keep-going", "--no-shrink")["findings"]
        self.assertGreater(len(found), 30, "different schedules give different signatures")
        for finding in found[:3]:
            self.assertIn("signature", finding["title"])
            replay = self.slalom("replay", finding["capsule"], "--json", "--times", 200, codes=[1])
            self.assertTrue(json.loads(replay.stdout)["same"])
        again = self.run_json(program, "--strategy", "random", "--schedules", 40, "--keep-going", "--no-shrink", "--workers", 1)
        self.assertEqual({f["title"] for f in again["findings"]}, {f["title"] for f in found})

    def test_capsule(self):
        program = self.build(LOST_UPDATE, "lost")
        finding = self.run_json(program)["findings"][0]
        for choices in ("nowhere", "sync", "everywhere"):
            replay = self.slalom("replay", finding["capsule"], "--json", "--choices", choices, codes=[1])
            self.assertTrue(json.loads(replay.stdout)["same"], choices)
        text = self.slalom("replay", finding["capsule"], "--trace", codes=[1]).stdout
        for words in ("add#1", "add#2", "preempted", "counter == 2", "the same again"):
            self.assertIn(words, text)

    def test_another_environment(self):
        # The variables on main()'s stack have the same addresses, which are part of the state that must be the same.
        program = self.build(ON_STACK, "on_stack")
        finding = self.run_json(program)["findings"][0]
        for extra in ({}, {"X": "1"}, {"X": "1" * 100}, {f"X{i}": "" for i in range(100)}):
            done = subprocess.run([SLALOM, "replay", finding["capsule"], "--json"], cwd=self.folder, env=dict(os.environ, **extra),
                                  capture_output=True, text=True, timeout=100)
            self.assertTrue(json.loads(done.stdout)["same"], extra)

    def test_another_program(self):
        program = self.build(LOST_UPDATE, "changed")
        finding = self.run_json(program)["findings"][0]
        self.build(LOST_UPDATE + "\nint more;\n", "changed")
        replay = self.slalom("replay", finding["capsule"], codes=[2])
        self.assertIn("is not the program that this was found in", replay.stderr)
        program.unlink()
        replay = self.slalom("replay", finding["capsule"], codes=[2])
        self.assertIn("is not here", replay.stderr)


if __name__ == "__main__":
    unittest.main()
