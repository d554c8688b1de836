"""Futexes that programs use directly. The model answers as the kernel does, which each program tests by also running without
slalom. Bugs with futexes are found."""

import subprocess
import unittest

from support import ProgramTest

START = r"""
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define THREADS 3
static _Atomic uint32_t first, second;
static long futex(_Atomic uint32_t *word, int op, uint32_t value, long more, _Atomic uint32_t *other, uint32_t last) {
  return syscall(SYS_futex, word, op, value, more, other, last);
}
static pthread_t threads[THREADS];
static void start(void *(*work)(void *)) {
  for (long i = 0; i < THREADS; ++i) pthread_create(&threads[i], 0, work, (void *)i);
}
static void join(void) {
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], 0);
}
"""

# All threads wait on the first word and are woken or moved in one of several ways. A moved thread needs a wake-up of the second
# word.
MOVED = START + r"""
static void *wait_first(void *number) {
  assert(futex(&first, FUTEX_WAIT_BITSET, 0, 0, 0, 1u << (long)number) == 0);
  return 0;
}
static void gather(int op, uint32_t wake, uint32_t *woken, uint32_t *moved) {
  *woken = *moved = 0;
  while (*woken + *moved < THREADS) {
    long count = futex(&first, op, wake, INT_MAX, &second, 0);
    assert(count >= 0 && count <= THREADS);
    *woken += count < wake ? count : wake;
    *moved += count < wake ? 0 : count - wake;
    sched_yield();
  }
}
int main(void) {
  uint32_t woken, moved;
  for (int round = 0; round < 2; ++round) {
    start(wait_first);
    assert(futex(&first, FUTEX_CMP_REQUEUE, 1, INT_MAX, &second, 7) == -1 && errno == EAGAIN);
    assert(futex(&first, FUTEX_REQUEUE, -1, INT_MAX, &second, 0) == -1 && errno == EINVAL);
    gather(round == 0 ? FUTEX_REQUEUE : FUTEX_CMP_REQUEUE, round, &woken, &moved);
    assert(round == 1 || woken == 0);
    for (uint32_t i = 0; i < moved; ++i) assert(futex(&second, FUTEX_WAKE, 1, 0, 0, 0) == 1);
    assert(futex(&second, FUTEX_WAKE, INT_MAX, 0, 0, 0) == 0 && futex(&first, FUTEX_WAKE, INT_MAX, 0, 0, 0) == 0);
    join();
  }
  /* One after the other, by their bits; none that has other bits. */
  start(wait_first);
  assert(futex(&first, FUTEX_WAKE_BITSET, INT_MAX, 0, 0, 1u << THREADS) == 0);
  assert(futex(&first, FUTEX_WAKE_BITSET, INT_MAX, 0, 0, 0) == -1 && errno == EINVAL);
  for (int i = 0; i < THREADS; ++i) {
    while (futex(&first, FUTEX_WAKE_BITSET, INT_MAX, 0, 0, 1u << i) == 0) sched_yield();
    pthread_join(threads[i], 0);
  }
  /* The second word goes from 5 to 3; since it was 5, those who wait for it are woken as well. */
  second = 5;
  assert(futex(&first, FUTEX_WAKE_OP, 1, 1, &second, FUTEX_OP(FUTEX_OP_ADD, -2, FUTEX_OP_CMP_EQ, 5)) == 0 && second == 3);
  start(wait_first);
  for (int left = THREADS; left > 0;) {
    long count = futex(&second, FUTEX_WAKE_OP, 1, 1, &first, FUTEX_OP(FUTEX_OP_XOR, 0, FUTEX_OP_CMP_LT, 1));
    assert(count == 0 || count == 1);
    left -= count;
    sched_yield();
  }
  join();
  /* A limit holds wherever one waits. */
  struct timespec soon = {0, 1000000};
  assert(futex(&first, FUTEX_WAIT, 0, (long)&soon, 0, 0) == -1 && errno == ETIMEDOUT);
  return 0;
}
"""

# The program forgets the moved threads, or it does not.
FORGOTTEN = START + r"""
static void *wait_first(void *unused) {
  futex(&first, FUTEX_WAIT, 0, 0, 0, 0);
  return unused;
}
int main(void) {
  start(wait_first);
  for (long count = 0; count < THREADS; sched_yield()) count += futex(&first, FUTEX_REQUEUE, 1, INT_MAX, &second, 0);
  FIX(futex(&second, FUTEX_WAKE, INT_MAX, 0, 0, 0);)
  join();
  return 0;
}
"""

LOCK = START + r"""
static void lock(_Atomic uint32_t *word) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(word, &none, gettid())) assert(futex(word, FUTEX_LOCK_PI, 0, 0, 0, 0) == 0);
}
static void unlock(_Atomic uint32_t *word) {
  uint32_t me = gettid();
  if (!atomic_compare_exchange_strong(word, &me, 0)) assert(futex(word, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == 0);
}
"""

# A lock whose word names its owner, and the C library's mutex of the same kind.
PI = LOCK + r"""
static int counter, guarded;
static pthread_mutex_t mutex;
static void *work(void *unused) {
  lock(&first);
  assert((first & FUTEX_TID_MASK) == gettid());
  assert(futex(&first, FUTEX_LOCK_PI, 0, 0, 0, 0) == -1 && errno == EDEADLK);
  int before = counter;
  sched_yield();
  counter = before + 1;
  unlock(&first);
  pthread_mutex_lock(&mutex);
  before = guarded;
  sched_yield();
  guarded = before + 1;
  pthread_mutex_unlock(&mutex);
  return unused;
}
static void *other(void *unused) {
  struct timespec past = {0, 0};
  assert(futex(&second, FUTEX_TRYLOCK_PI, 0, 0, 0, 0) == -1 && errno == EAGAIN);
  assert(futex(&second, FUTEX_LOCK_PI, 0, (long)&past, 0, 0) == -1 && errno == ETIMEDOUT);
  assert(futex(&second, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == -1 && errno == EPERM);
  return unused;
}
int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  assert(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0);
  pthread_mutex_init(&mutex, &attributes);
  start(work);
  join();
  assert(counter == THREADS && guarded == THREADS && first == 0);
  assert(futex(&second, FUTEX_TRYLOCK_PI, 0, 0, 0, 0) == 0 && second == gettid());
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  pthread_join(thread, 0);
  assert(futex(&second, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == 0 && (second & FUTEX_TID_MASK) == 0);
  return 0;
}
"""

# Without the communication through memory, which only programs built with -fsanitize=thread show.
ABBA = START + r"""
static void lock(_Atomic uint32_t *word) { assert(futex(word, FUTEX_LOCK_PI, 0, 0, 0, 0) == 0); }
static void unlock(_Atomic uint32_t *word) { assert(futex(word, FUTEX_UNLOCK_PI, 0, 0, 0, 0) == 0); }
static void *work(void *number) {
  _Atomic uint32_t *one = (long)number == 0 FIX(|| 1) ? &first : &second, *other = one == &first ? &second : &first;
  lock(one);
  lock(other);
  unlock(other);
  unlock(one);
  return 0;
}
int main(void) {
  start(work);
  join();
  return 0;
}
"""


class Futexes(ProgramTest):
    def search(self, text, *options, fixed=True, schedules=100):
        program = self.build(text, flags=["-DFIX(...)=__VA_ARGS__" if fixed else "-DFIX(...)="])
        if fixed:
            subprocess.run([program], check=True, timeout=60)
        found = self.run_json(program, "--out", "", "--no-shrink", "--schedules", schedules, *options)
        self.assertEqual(found["trouble"], [])
        return [finding["title"] for finding in found["findings"]]

    def test_what_the_kernel_says(self):
        for text in (MOVED, PI):
            self.assertEqual(self.search(text, "--strategy", "random", "--run-twice"), [])
            self.assertEqual(self.search(text, "--timeouts", "idle"), [])

    def test_nothing_is_left_to_the_kernel(self):
        for text in (MOVED, PI):
            done = self.slalom("run", "--schedules", 2, "--out", "", "--", self.build(text), codes=(0,))
            self.assertNotIn("does not model", done.stderr)

    def test_who_was_moved_and_forgotten(self):
        self.assertEqual(self.search(FORGOTTEN), [])
        titles = self.search(FORGOTTEN, fixed=False, schedules=1000)
        self.assertEqual(len(titles), 1)
        self.assertRegex(titles[0], "deadlock|lost wakeup")

    def test_a_cycle_of_owners(self):
        self.assertEqual(self.search(ABBA), [])
        titles = self.search(ABBA, fixed=False, schedules=1000)
        self.assertEqual(len(titles), 1)
        self.assertRegex(titles[0], "^deadlock: .*first.*second|^deadlock: .*second.*first")


if __name__ == "__main__":
    unittest.main()
