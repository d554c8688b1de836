"""Locks and similar objects in freed memory: their use is a use after free like any other, although the functions that use the
memory are not the program's own. Each has a twin that waits before it frees."""

import unittest

from support import ProgramTest

# The thread's operation on the object, and the object's initialisation.
USES = {
    "mutex": ("pthread_mutex_t", "pthread_mutex_init(it, 0)", "pthread_mutex_lock(it); pthread_mutex_unlock(it)"),
    "trylock": ("pthread_mutex_t", "pthread_mutex_init(it, 0)", "pthread_mutex_trylock(it)"),
    "rwlock": ("pthread_rwlock_t", "pthread_rwlock_init(it, 0)", "pthread_rwlock_rdlock(it)"),
    "condition": ("pthread_cond_t", "pthread_cond_init(it, 0)", "pthread_cond_signal(it)"),
    "semaphore": ("sem_t", "sem_init(it, 0, 0)", "sem_post(it)"),
    "barrier": ("pthread_barrier_t", "pthread_barrier_init(it, 0, 1)", "pthread_barrier_wait(it)"),
}

FREED = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
static void *use(void *data) {
  %(type)s *it = data;
  %(use)s;
  return 0;
}
int main(void) {
  %(type)s *it = malloc(sizeof *it);
  %(begin)s;
  pthread_t thread;
  pthread_create(&thread, 0, use, it);
#ifdef FIXED
  pthread_join(thread, 0);
  free(it);
#else
  free(it);
  pthread_join(thread, 0);
#endif
}
"""

# std::mutex has no destructor that reports misuse. It is not the first member of its object.
DELETED = r"""
#include <memory>
#include <mutex>
#include <thread>
struct Account {
  long unused[3] = {};
  std::mutex lock;
};
int main() {
  auto account = std::make_unique<Account>();
  std::thread other([&, it = account.get()] { std::lock_guard held(it->lock); });
#ifdef FIXED
  other.join();
  account.reset();
#else
  account.reset();
  other.join();
#endif
}
"""

# A thread that waited for a latch may delete it at once: the other thread's remaining operations use only its address.
LATCH = r"""
#include <latch>
#include <thread>
int main() {
  auto* latch = new std::latch(1);
  std::thread other([=] { latch->count_down(); });
  latch->wait();
  delete latch;
  other.join();
}
"""

# More blocks than slalom keeps aside. Memory that libc has allocated at the same place since then does not count as freed.
GIVEN_OUT_AGAIN = r"""
#include <stdlib.h>
#include <string.h>
int main(void) {
  for (int i = 0; i < 6000; ++i) free(malloc(40));
  for (int i = 0; i < 100; ++i) {
    char *copy = strdup("a text that needs as much memory as these");
    if (copy[i % 40] == 0) return 1;
  }
}
"""


class FreedObjectsTest(ProgramTest):
    def kinds(self, text, name, suffix=".c", flags=()):
        program = self.build(text, name, suffix, ["-fsanitize=thread", *flags])
        answer = self.run_json(program, "--schedules", 50, "--keep-going")
        return {finding["kind"] for finding in answer["findings"]}

    def test_uses_after_free(self):
        for name, (kind, begin, use) in USES.items():
            text = FREED % {"type": kind, "begin": begin, "use": use}
            self.assertIn("use-after-free", self.kinds(text, name), name)
            self.assertEqual(self.kinds(text, name + "_fixed", flags=["-DFIXED"]), set(), name)

    def test_a_mutex_inside_an_object(self):
        self.assertIn("use-after-free", self.kinds(DELETED, "account", ".cc"))
        self.assertEqual(self.kinds(DELETED, "account_fixed", ".cc", ["-DFIXED"]), set())

    def test_what_is_no_use_after_free(self):
        self.assertNotIn("use-after-free", self.kinds(LATCH, "latch", ".cc"))
        self.assertNotIn("use-after-free", self.kinds(GIVEN_OUT_AGAIN, "given_out_again"))


if __name__ == "__main__":
    unittest.main()
