"""The API does not say which waiting thread goes on. A search reaches every order in which three waiters can go on."""

import itertools
import subprocess
import unittest

from support import ProgramTest

# Three threads wait, then main() wakes them. Each appends its number to the order, which main() writes to a file. Without
# preemptions a thread runs until it waits, so all three wait before main() continues.
PROGRAM = r"""
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static mtx_t c11_lock;
static cnd_t c11_ready;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t waits, done, tokens;
static int ends[2], may_go;
static uint32_t word, second_word = 1;
static char order[4];
static int length;
static void note(long self) {
  assert(length < 3);
  order[length++] = (char)('0' + self);
}
static long futex(uint32_t *at, int op, uint32_t value, long most, uint32_t *other) {
  return syscall(SYS_futex, at, op, value, most, other, 0);
}

static void *of_condition(void *self) {
  pthread_mutex_lock(&lock);
  sem_post(&waits);
  while (may_go == 0) pthread_cond_wait(&ready, &lock);
  --may_go;
  note((long)self);
  pthread_mutex_unlock(&lock);
  sem_post(&done);
  return 0;
}
static void *of_c11(void *self) {
  mtx_lock(&c11_lock);
  sem_post(&waits);
  while (may_go == 0) cnd_wait(&c11_ready, &c11_lock);
  --may_go;
  note((long)self);
  mtx_unlock(&c11_lock);
  sem_post(&done);
  return 0;
}
static void *of_mutex(void *self) {
  sem_post(&waits);
  pthread_mutex_lock(&gate);
  note((long)self);
  pthread_mutex_unlock(&gate);
  return 0;
}
static void *of_spin(void *self) {
  sem_post(&waits);
  pthread_spin_lock(&spin);
  note((long)self);
  pthread_spin_unlock(&spin);
  return 0;
}
/* The first one reads, the others write. */
static void *of_rwlock(void *self) {
  sem_post(&waits);
  if ((long)self == 1) pthread_rwlock_rdlock(&shared);
  else pthread_rwlock_wrlock(&shared);
  note((long)self);
  pthread_rwlock_unlock(&shared);
  return 0;
}
static void *of_semaphore(void *self) {
  sem_post(&waits);
  sem_wait(&tokens);
  note((long)self);
  sem_post(&done);
  return 0;
}
static void *of_pipe(void *self) {
  char byte;
  sem_post(&waits);
  assert(read(ends[0], &byte, 1) == 1);
  note((long)self);
  sem_post(&done);
  return 0;
}
static void *of_futex(void *self) {
  sem_post(&waits);
  futex(&word, FUTEX_WAIT_PRIVATE, 0, 0, 0);
  note((long)self);
  sem_post(&done);
  return 0;
}

static void signal_one(void) {
  pthread_mutex_lock(&lock);
  ++may_go;
  pthread_cond_signal(&ready);
  pthread_mutex_unlock(&lock);
  sem_wait(&done);
}
static void signal_c11(void) {
  mtx_lock(&c11_lock);
  ++may_go;
  cnd_signal(&c11_ready);
  mtx_unlock(&c11_lock);
  sem_wait(&done);
}
static void broadcast(void) {
  if (may_go > 0 || length > 0) return;
  pthread_mutex_lock(&lock);
  may_go = 3;
  pthread_cond_broadcast(&ready);
  pthread_mutex_unlock(&lock);
}
static void post(void) {
  sem_post(&tokens);
  sem_wait(&done);
}
static void write_byte(void) {
  assert(write(ends[1], "x", 1) == 1);
  sem_wait(&done);
}
static void wake(void) {
  assert(futex(&word, FUTEX_WAKE_PRIVATE, 1, 0, 0) == 1);
  sem_wait(&done);
}
/* Wakes one and moves one of the others; then wakes the one that was moved, and then the one that was not. */
static void requeue(void) {
  static int called;
  switch (called++) {
    case 0: assert(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1, &second_word) == 2); break;
    case 1: assert(futex(&second_word, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0) == 1); break;
    default: assert(futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0) == 1);
  }
  sem_wait(&done);
}
static void open_mutex(void) {
  if (length == 0 && may_go++ == 0) pthread_mutex_unlock(&gate);
}
static void open_spin(void) {
  if (may_go++ == 0) pthread_spin_unlock(&spin);
}
static void open_rwlock(void) {
  if (may_go++ == 0) pthread_rwlock_unlock(&shared);
}

static const struct {
  const char *name;
  void *(*waits)(void *);
  void (*lets_go)(void);
} kKinds[] = {{"signal", of_condition, signal_one}, {"cnd_signal", of_c11, signal_c11},
              {"broadcast", of_condition, broadcast}, {"mutex", of_mutex, open_mutex}, {"spin", of_spin, open_spin},
              {"rwlock", of_rwlock, open_rwlock}, {"semaphore", of_semaphore, post}, {"pipe", of_pipe, write_byte},
              {"futex", of_futex, wake}, {"requeue", of_futex, requeue}};

int main(int count, char **arguments) {
  assert(count == 2);
  sem_init(&waits, 0, 0);
  sem_init(&done, 0, 0);
  sem_init(&tokens, 0, 0);
  mtx_init(&c11_lock, mtx_plain);
  cnd_init(&c11_ready);
  pthread_spin_init(&spin, 0);
  assert(pipe(ends) == 0);
  pthread_mutex_lock(&gate);
  pthread_spin_lock(&spin);
  pthread_rwlock_wrlock(&shared);
  int kind = 0;
  while (strcmp(kKinds[kind].name, arguments[1]) != 0) ++kind;
  pthread_t threads[3];
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], 0, kKinds[kind].waits, (void *)(i + 1));
  for (int i = 0; i < 3; ++i) sem_wait(&waits);
  for (int i = 0; i < 3; ++i) kKinds[kind].lets_go();
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
  order[3] = '\n';
  int file = open("orders", O_WRONLY | O_CREAT | O_APPEND, 0600);
  assert(write(file, order, 4) == 4);
  close(file);
  return 0;
}
"""
KINDS = ["signal", "cnd_signal", "broadcast", "mutex", "spin", "rwlock", "semaphore", "pipe", "futex", "requeue"]
EVERY_ORDER = {"".join(order) for order in itertools.permutations("123")}


class Wakeups(ProgramTest):
    def orders(self, program, kind):
        orders = self.folder / "orders"
        orders.unlink(missing_ok=True)
        done = self.slalom("run", "--strategy", "dfs:limit=0", "--schedules", 5000, "--out", "", "--", program, kind, codes=(0,))
        return set(orders.read_text().split()), done.stdout

    def test_every_waiter_can_be_the_next(self):
        program = self.build(PROGRAM)
        for kind in KINDS:
            found, output = self.orders(program, kind)
            self.assertEqual(found, EVERY_ORDER, kind + "\n" + output)

    def test_as_without_slalom(self):
        program = self.build(PROGRAM)
        subprocess.run([program, "mutex"], cwd=self.folder, check=True, timeout=60)
        self.assertIn((self.folder / "orders").read_text().strip(), EVERY_ORDER)


if __name__ == "__main__":
    unittest.main()
