"""Trylocks: effects that a failed try must not have (order anything, count as held), and which threads may overtake others."""

import json
import unittest

from support import ProgramTest

# One thread writes under the lock. Later, while another thread holds the lock, a third thread tries it, fails, and reads anyway.
# With --timeouts idle, time passes only if no thread can run, so every execution takes this course. Only the lock could order
# the write and the read, and a failed try orders nothing.
TRIES_IN_VAIN = r"""
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
int value, copy;
static const char *kind;
static struct timespec start;
static void rest_until(int second) {
  sem_t never;
  sem_init(&never, 0, 0);
  struct timespec until = {start.tv_sec + second, 0};
  assert(sem_timedwait(&never, &until) != 0);
}
static int is(const char *name) { return strcmp(kind, name) == 0; }
static void take(void) {
  if (is("mutex") || is("timedlock")) pthread_mutex_lock(&mutex);
  else if (is("spin")) pthread_spin_lock(&spin);
  else if (is("semaphore") || is("timedwait")) sem_wait(&semaphore);
  else pthread_rwlock_wrlock(&shared);
}
static void give(void) {
  if (is("mutex") || is("timedlock")) pthread_mutex_unlock(&mutex);
  else if (is("spin")) pthread_spin_unlock(&spin);
  else if (is("semaphore") || is("timedwait")) sem_post(&semaphore);
  else pthread_rwlock_unlock(&shared);
}
static int try_it(void) {
  struct timespec past = {1, 0};
  if (is("mutex")) return pthread_mutex_trylock(&mutex);
  if (is("timedlock")) return pthread_mutex_timedlock(&mutex, &past);
  if (is("spin")) return pthread_spin_trylock(&spin);
  if (is("semaphore")) return sem_trywait(&semaphore);
  if (is("timedwait")) return sem_timedwait(&semaphore, &past);
  if (is("read")) return pthread_rwlock_tryrdlock(&shared);
  if (is("timedread")) return pthread_rwlock_timedrdlock(&shared, &past);
  return pthread_rwlock_trywrlock(&shared);
}
static void *writes(void *unused) {
  take();
  value = 1;
  give();
  return unused;
}
static void *holds(void *unused) {
  rest_until(10);
  take();
  rest_until(30);
  give();
  return unused;
}
static void *reads(void *unused) {
  rest_until(20);
#ifdef FIXED
  take();
#else
  assert(try_it() != 0);
#endif
  copy = value;
#ifdef FIXED
  give();
#endif
  return unused;
}
int main(int count, char **arguments) {
  assert(count == 2);
  kind = arguments[1];
  clock_gettime(CLOCK_REALTIME, &start);
  pthread_spin_init(&spin, 0);
  sem_init(&semaphore, 0, 1);
  pthread_t threads[3];
  pthread_create(&threads[0], 0, writes, 0);
  pthread_create(&threads[1], 0, holds, 0);
  pthread_create(&threads[2], 0, reads, 0);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  return 0;
}
"""

# A reader is in, a writer may wait, and another thread tries to read. A lock that prefers writers lets no reader past a waiting
# writer; another lock does.
PAST_A_WRITER = r"""
#include <assert.h>
#include <pthread.h>
static pthread_rwlock_t lock = KIND;
static int got;
static void *write_it(void *unused) {
  pthread_rwlock_wrlock(&lock);
  pthread_rwlock_unlock(&lock);
  return unused;
}
static void *try_to_read(void *unused) {
  got = pthread_rwlock_tryrdlock(&lock) == 0;
  if (got) pthread_rwlock_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t writer, reader;
  pthread_rwlock_rdlock(&lock);
  pthread_create(&writer, 0, write_it, 0);
  pthread_create(&reader, 0, try_to_read, 0);
  pthread_join(reader, 0);
  pthread_rwlock_unlock(&lock);
  pthread_join(writer, 0);
  assert(EXPECTED);
  return 0;
}
"""

# The results of another thread's tries while main() holds the lock for reading, for writing, and not at all.
WHILE_MAIN_HOLDS_IT = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
static pthread_rwlock_t lock = KIND;
static int may_read, may_write;
static void *try_both(void *unused) {
  may_read = pthread_rwlock_tryrdlock(&lock) == 0;
  if (may_read) pthread_rwlock_unlock(&lock);
  may_write = pthread_rwlock_trywrlock(&lock) == 0;
  if (may_write) pthread_rwlock_unlock(&lock);
  return unused;
}
static int others_get(int reading, int writing) {
  pthread_t other;
  pthread_create(&other, 0, try_both, 0);
  pthread_join(other, 0);
  return may_read == reading && may_write == writing;
}
int main(void) {
  pthread_rwlock_rdlock(&lock);
  assert(others_get(1, 0));
  assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_wrlock(&lock);
  assert(others_get(0, 0));
  pthread_rwlock_unlock(&lock);
  assert(others_get(1, 1));
  return 0;
}
"""

# Both threads change an atomic counter, one of them even if its try fails. A search that took a failed try for a lock that is
# held would take the accesses for ordered, and never switch between the two halves of the addition.
NOT_UNDER_THE_LOCK = r"""
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int counter;
static void *add(void *unused) {
  const int taken = TAKE(&lock) == 0;
  atomic_store(&counter, atomic_load(&counter) + 1);
  if (taken) pthread_mutex_unlock(&lock);
  return unused;
}
static void *add_locked(void *unused) {
  pthread_mutex_lock(&lock);
  atomic_store(&counter, atomic_load(&counter) + 1);
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t one, two;
  pthread_create(&one, 0, add_locked, 0);
  pthread_create(&two, 0, add, 0);
  pthread_join(one, 0);
  pthread_join(two, 0);
  assert(counter == 2);
  return 0;
}
"""


class Trylocks(ProgramTest):
    def findings(self, program, *options, arguments=()):
        done = self.slalom("run", "--json", "--out", "", "--no-shrink", *options, "--", program, *arguments)
        result = json.loads(done.stdout)
        self.assertEqual(result["trouble"], [])
        return result

    def test_a_try_in_vain_orders_nothing(self):
        broken = self.build(TRIES_IN_VAIN, "broken", flags=["-fsanitize=thread"])
        fixed = self.build(TRIES_IN_VAIN, "fixed", flags=["-fsanitize=thread", "-DFIXED"])
        options = ("--strategy", "random", "--schedules", 3, "--timeouts", "idle")
        for kind in ("mutex", "timedlock", "spin", "semaphore", "timedwait", "read", "timedread", "write"):
            kinds = [finding["kind"] for finding in self.findings(broken, *options, arguments=[kind])["findings"]]
            self.assertEqual(kinds, ["data-race"], kind)
            self.assertEqual(self.findings(fixed, *options, arguments=[kind])["findings"], [], kind)

    def test_nobody_reads_past_a_writer_that_is_preferred(self):
        prefers, default = "PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP", "PTHREAD_RWLOCK_INITIALIZER"
        for kind, expected, titles in ((prefers, "got", 1), (prefers, "!got", 1), (default, "got", 0), (default, "!got", 1)):
            program = self.build(PAST_A_WRITER, "past", flags=[f"-DKIND={kind}", f"-DEXPECTED={expected}"])
            result = self.findings(program, "--strategy", "dfs:limit=2")
            self.assertEqual([f["kind"] for f in result["findings"]], ["assertion"] * titles, (kind, expected))

    def test_nobody_writes_beside_readers(self):
        for kind in ("PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP", "PTHREAD_RWLOCK_INITIALIZER"):
            program = self.build(WHILE_MAIN_HOLDS_IT, "while", flags=[f"-DKIND={kind}"])
            result = self.findings(program, "--strategy", "dfs:limit=1")
            self.assertEqual((result["findings"], result["end"]), ([], "done"), kind)

    def test_atomics_after_a_try_in_vain_are_not_under_the_lock(self):
        for take, kinds in (("pthread_mutex_trylock", ["assertion"]), ("pthread_mutex_lock", [])):
            program = self.build(NOT_UNDER_THE_LOCK, "under", flags=["-fsanitize=thread", f"-DTAKE={take}"])
            result = self.findings(program, "--strategy", "random", "--schedules", 300)
            self.assertEqual([f["kind"] for f in result["findings"]], kinds, take)


if __name__ == "__main__":
    unittest.main()
