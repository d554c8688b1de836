"""Forbidden uses of locks and threads, which often do no harm without slalom: each is a finding whose title names the misuse."""

import unittest

from support import ProgramTest

PROGRAM = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static void *run(void *unused) {
  OTHER;
  return unused;
}
int main(void) {
  pthread_t other;
  pthread_spin_init(&spin, 0);
  FIRST;
  pthread_create(&other, 0, run, 0);
  pthread_join(other, 0);
  LAST;
  return 0;
}
"""

# The first calls of main(), the calls of the other thread, the last calls of main(), and the misuse in the title.
MISUSES = [
    ("", "pthread_mutex_unlock(&mutex)", "", "unlock of a mutex that is not locked"),
    ("pthread_mutex_lock(&mutex)", "pthread_mutex_unlock(&mutex)", "", "unlock of a mutex that another thread holds"),
    ("pthread_mutex_lock(&mutex)", "pthread_cond_wait(&condition, &mutex)", "",
     "wait on a condition variable without holding the mutex"),
    ("pthread_rwlock_rdlock(&shared)", "pthread_rwlock_unlock(&shared)", "",
     "unlock of a reader-writer lock that the thread does not hold"),
    ("pthread_rwlock_wrlock(&shared)", "pthread_rwlock_unlock(&shared)", "",
     "unlock of a reader-writer lock that the thread does not hold"),
    ("", "pthread_spin_unlock(&spin)", "", "unlock of a spin lock that is not locked"),
    ("pthread_mutex_lock(&mutex)", "", "pthread_mutex_destroy(&mutex)", "destruction of a mutex that is locked"),
    ("", "pthread_rwlock_rdlock(&shared)", "pthread_rwlock_destroy(&shared)", "destruction of a reader-writer lock that is locked"),
    ("", "", "pthread_join(other, 0)", "join of a thread that was joined already"),
]

# Uses that look like misuses but are defined.
USES = [
    ("pthread_mutex_lock(&checked)", "assert(pthread_mutex_unlock(&checked) == EPERM)", "assert(pthread_mutex_unlock(&checked) == 0)"),
    ("", "assert(pthread_mutex_unlock(&checked) == EPERM)", "pthread_mutex_destroy(&checked)"),
    ("pthread_rwlock_rdlock(&shared)", "pthread_rwlock_rdlock(&shared); pthread_rwlock_unlock(&shared)", "pthread_rwlock_unlock(&shared)"),
    ("pthread_spin_lock(&spin)", "pthread_spin_unlock(&spin)", "pthread_spin_destroy(&spin)"),
]


class Misuses(ProgramTest):
    def titles(self, first, other, last):
        program = self.build(PROGRAM, flags=[f"-DFIRST={first}", f"-DOTHER={other}", f"-DLAST={last}"])
        result = self.run_json(program, "--schedules", 3, "--no-shrink", "--out", "")
        return [finding["title"] for finding in result["findings"]]

    def test_are_named(self):
        for first, other, last, words in MISUSES:
            found = self.titles(first, other, last)
            self.assertEqual(len(found), 1, (words, found))
            self.assertIn(words, found[0])

    def test_what_is_none(self):
        for use in USES:
            self.assertEqual(self.titles(*use), [], use)


if __name__ == "__main__":
    unittest.main()
