"""A thread sees the same attributes of its own as without slalom, although slalom gives it another stack."""

import json
import subprocess
import unittest

from support import SLALOM, ProgramTest

PROGRAM = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static sem_t told;
static void *tell(void *name) {
  pthread_attr_t own;
  size_t size, guard;
  void *stack;
  int detached, scope, inherited, policy;
  char here;
  pthread_getattr_np(pthread_self(), &own);
  pthread_attr_getstack(&own, &stack, &size);
  pthread_attr_getguardsize(&own, &guard);
  pthread_attr_getdetachstate(&own, &detached);
  pthread_attr_getscope(&own, &scope);
  pthread_attr_getinheritsched(&own, &inherited);
  pthread_attr_getschedpolicy(&own, &policy);
  pthread_attr_destroy(&own);
  const int inside = &here >= (char *)stack && &here < (char *)stack + size;
  printf("%s: %zu of %zu, %d %d %d %d %d\n", (const char *)name, guard, size, detached, scope, inherited, policy, inside);
  sem_post(&told);
  return 0;
}
static void run(const char *name, pthread_attr_t *wanted) {
  pthread_t thread;
  int detached = PTHREAD_CREATE_JOINABLE;
  if (wanted) pthread_attr_getdetachstate(wanted, &detached);
  if (pthread_create(&thread, wanted, tell, (void *)name) != 0) abort();
  sem_wait(&told);
  if (detached == PTHREAD_CREATE_JOINABLE) pthread_join(thread, 0);
}
int main(void) {
  pthread_attr_t wanted;
  run("usual", 0);
  pthread_attr_init(&wanted);
  run("as initialised", &wanted);
  pthread_attr_setstacksize(&wanted, 1 << 20);
  pthread_attr_setguardsize(&wanted, 3 * 4096);
  run("three pages", &wanted);
  pthread_attr_setguardsize(&wanted, 0);
  run("no guard", &wanted);
  pthread_attr_setdetachstate(&wanted, PTHREAD_CREATE_DETACHED);
  run("detached", &wanted);
  pthread_attr_setdetachstate(&wanted, PTHREAD_CREATE_JOINABLE);
  pthread_attr_setstack(&wanted, aligned_alloc(4096, 1 << 18), 1 << 18);
  run("own stack", &wanted);
}
"""


class Attributes(ProgramTest):
    def test_as_without_slalom(self):
        program = self.build(PROGRAM)
        for stack in (8192, 1024):  # the usual size and another size
            limited = f"ulimit -s {stack}; exec "
            alone = subprocess.run(["sh", "-c", limited + str(program)], capture_output=True, text=True, check=True).stdout
            self.assertEqual(alone.count(f"of {stack * 1024},"), 2 if stack == 8192 else 5)
            (self.folder / "alone").write_text(alone)
            command = f"{SLALOM} run --json --expect-output alone --schedules 50 --out '' -- {program}"
            done = subprocess.run(["sh", "-c", limited + command], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(json.loads(done.stdout)["findings"], [], done.stderr)


if __name__ == "__main__":
    unittest.main()
