"""OpenMP as gcc compiles it: its regions, loops, locks and tasks are controlled, bugs with them are found and replay, and correct
use is never reported."""

import os
import unittest

from support import OpenMpTest

# A sum, in one of several ways.
SUM = r"""
#include <assert.h>
#include <omp.h>
int main(void) {
  int sum = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
  #pragma omp parallel for LOOP
  for (int i = 1; i <= 4; ++i) {
    EACH
    sum += i;
    AFTER
  }
  omp_destroy_lock(&lock);
  assert(sum == 10);
  return 0;
}
"""
WAYS = {
    "reduction": ("-DLOOP=reduction(+ : sum)", "-DEACH=", "-DAFTER="),
    "critical": ("-DLOOP=", '-DEACH=_Pragma("omp critical")', "-DAFTER="),
    "atomic": ("-DLOOP=", '-DEACH=_Pragma("omp atomic")', "-DAFTER="),
    "lock": ("-DLOOP=", "-DEACH=omp_set_lock(&lock);", "-DAFTER=omp_unset_lock(&lock);"),
    "dynamic": ("-DLOOP=schedule(dynamic) reduction(+ : sum)", "-DEACH=", "-DAFTER="),
}
RACY = ("-DLOOP=", "-DEACH=", "-DAFTER=")

# Two sections that take two critical sections in opposite order.
ABBA = r"""
static int a, b;
int main(void) {
  #pragma omp parallel sections
  {
    #pragma omp section
    {
      #pragma omp critical(first)
      {
        ++a;
        #pragma omp critical(second)
        ++b;
      }
    }
    #pragma omp section
    {
      #pragma omp critical(OUTER)
      {
        ++b;
        #pragma omp critical(INNER)
        ++a;
      }
    }
  }
  return 0;
}
"""

# The thread that got each iteration, as one number on standard error.
ORDERS = r"""
#include <omp.h>
#include <stdio.h>
int main(void) {
  int who = 0;
  #pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 3; ++i) {
    const int bit = omp_get_thread_num() << i;
    #pragma omp atomic
    who |= bit;
  }
  if (who == WANTED) return 1;
  return 0;
}
"""

# A barrier that one of the threads never reaches.
ALONE = r"""
#include <omp.h>
static void wait(void) {
  #pragma omp barrier
}
int main(void) {
  #pragma omp parallel
  if (omp_get_thread_num() == 0) wait();
  #pragma omp parallel
  wait();
  return 0;
}
"""

# A task that its parent does not wait for.
TASK = r"""
#include <assert.h>
int main(void) {
  int x = 0, seen = 0;
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp task shared(x)
    x = 1;
    WAIT
    seen = x;
  }
  assert(seen == 1);
  return 0;
}
"""

# As many classes as there are orders that the program can distinguish, and no more.
CLASSES = {
    "critical": ("""
  #pragma omp parallel
  {
    #pragma omp critical
    ++x;
  }""", 2),
    "barrier": ("""
  #pragma omp parallel
  {
    #pragma omp barrier
  }""", 1),
    "twice": ("""
  for (int i = 0; i < 2; ++i) {
    #pragma omp parallel
    {
      #pragma omp critical
      ++x;
    }
  }""", 4),
    "single": ("""
  #pragma omp parallel
  {
    #pragma omp single
    ++x;
  }""", 2),
    # Three iterations, by one thread or the other, and the thread that is the last to find that nothing is left.
    "dynamic": ("""
  #pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 3; ++i) ;""", 16),
    "sections": ("""
  #pragma omp parallel sections
  {
    #pragma omp section
    ++x;
    #pragma omp section
    ++y;
  }""", 8),
    "ordered": ("""
  #pragma omp parallel for ordered schedule(dynamic)
  for (int i = 0; i < 3; ++i) {
    #pragma omp ordered
    ++x;
  }""", 8),
}

# Each execution adds the threads' operations in their order to a file.
TASKS = r"""
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>
static char all[64];
static int count;
static void note(char what) {
  #pragma omp critical(notes)
  {
    all[count++] = what;
    all[count++] = '0' + omp_get_thread_num();
  }
}
int main(void) {
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp task
    note('a');
    note('b');
    #pragma omp taskwait
    note('c');
  }
  all[count++] = '\n';
  int file = open(OUTCOMES, O_WRONLY | O_APPEND | O_CREAT, 0666);
  return write(file, all, count) != count;
}
"""

DETACHED = r"""
#include <omp.h>
static int done;
int main(void) {
  #pragma omp parallel
  #pragma omp single
  {
    omp_event_handle_t event;
    #pragma omp task detach(event)
    done = 1;
    omp_fulfill_event(event);
  }
  return !done;
}
"""

NOT_ITS_OWN = r"""
#include <omp.h>
int main(void) {
  omp_lock_t lock;
  omp_init_lock(&lock);
  omp_set_lock(&lock);
  #pragma omp parallel
  if (omp_get_thread_num() == 1) omp_unset_lock(&lock);
  return 0;
}
"""

MODULE = r"""
int work(void) {
  int sum = 0;
  #pragma omp parallel reduction(+ : sum)
  {
    #pragma omp barrier
    sum += 1;
  }
  return sum;
}
"""
LOADS = r"""
#include <dlfcn.h>
int main(void) {
  void *module = dlopen("./module.so", RTLD_NOW | RTLD_LOCAL);
  if (module == 0) return 2;
  int (*work)(void) = (int (*)(void))dlsym(module, "work");
  return work() != 2 || work() != 2;
}
"""

# The program handles the signals for illegal instructions.
HANDLER = r"""
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
static volatile int count;
static void skip(int signal, siginfo_t *info, void *data) {
  extern void jump_over(void *);
  jump_over(data);
  ++count;
}
#include <ucontext.h>
void jump_over(void *data) { ((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP] += 2; }
int main(void) {
  struct sigaction action = {0};
  action.sa_sigaction = skip;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, 0);
  int sum = 0;
  #pragma omp parallel reduction(+ : sum)
  {
    __asm__ volatile("ud2");
    #pragma omp barrier
    sum += 1;
  }
  assert(sum == 2 && count == 2);
  return 0;
}
"""

THREADS = r"""
#include <omp.h>
int main(void) {
  int count = 0;
  #pragma omp parallel reduction(+ : count)
  count += 1;
  return count == WANTED && omp_get_num_procs() == 4 ? 0 : 1;
}
"""


# libgomp allocates on its stack, by the number of new threads. Wrong offsets from there lead into the zeros.
GROWING = r"""
static int x;
int main(void) {
  volatile long zeros[2000] = {0};
  #pragma omp parallel num_threads(2)
  {
    #pragma omp critical
    ++x;
  }
  #pragma omp parallel num_threads(10)
  {
    #pragma omp critical
    ++x;
  }
  return (int)zeros[0];
}
"""


class OpenMp(OpenMpTest):
    def test_lost_update(self):
        program = self.program(SUM, *RACY, seen=True)
        result = self.run_json(program, "--strategy", "random", "--seed", 1, "--keep-going", "--schedules", 300)
        kinds = {finding["kind"]: finding for finding in result["findings"]}
        self.assertEqual(set(kinds), {"assertion", "data-race"})
        self.assertIn("sum == 10", kinds["assertion"]["title"])
        self.assertIn("data race on", kinds["data-race"]["title"])
        for finding in kinds.values():
            self.assertIn("the same in 20 of 20", self.slalom("replay", finding["capsule"], "--times", 20).stdout)

    def test_its_fixed_twins(self):
        for name, flags in WAYS.items():
            for seen in (False, True):
                with self.subTest(name, seen=seen):
                    program = self.program(SUM, *flags, seen=seen)
                    self.assertEqual(self.search(program, "--schedules", 300)["findings"], [])

    def test_deadlock_of_critical_sections(self):
        fixed = self.program(ABBA, "-DOUTER=first", "-DINNER=second")
        result = self.search(fixed, "--strategy", "dfs", "--schedules", 5000)
        self.assertEqual(result["findings"], [])
        self.assert_finished(result)
        finding = self.deadlocks(self.program(ABBA, "-DOUTER=second", "-DINNER=first"))
        self.assertIn("critical(first)", finding["title"])
        self.assertIn("critical(second)", finding["title"])

    def test_all_orders_of_a_dynamic_loop(self):
        for wanted in range(8):
            program = self.program(ORDERS, f"-DWANTED={wanted}")
            [finding] = self.search(program, "--strategy", "dfs")["findings"]
            self.assertIn("exit", finding["title"])
        never = self.search(self.program(ORDERS, "-DWANTED=8"), "--strategy", "dfs", "--schedules", 20000)
        self.assertEqual(never["findings"], [])
        self.assert_finished(never)

    def test_classes(self):
        for name, (body, count) in CLASSES.items():
            for strategy in ("dfs", "dpor"):
                with self.subTest(name, strategy=strategy):
                    program = self.program(f"int main(void) {{\n  static int x, y;{body}\n  return x + y < 0;\n}}\n")
                    result = self.search(program, "--strategy", strategy, "--choices", "everywhere")
                    self.assert_finished(result)
                    self.assertEqual(result["classes"], count)

    def test_teams_of_several_sizes_are_deterministic(self):
        self.search(self.program(GROWING), "--strategy", "dfs", "--choices", "everywhere", "--schedules", 3)

    def test_who_takes_a_task(self):
        outcomes = {}
        for strategy in ("dfs", "dpor"):
            file = self.folder / f"outcomes-{strategy}"
            program = self.program(TASKS, f'-DOUTCOMES="{file}"')
            self.assert_finished(self.search(program, "--strategy", strategy, "--choices", "everywhere", "--workers", 1))
            outcomes[strategy] = set(file.read_text().split())
        self.assertEqual(outcomes["dfs"], {"b0a0c0", "b0a1c0", "a1b0c0", "b1a1c1", "b1a0c1", "a0b1c1"})
        self.assertEqual(outcomes["dpor"], outcomes["dfs"])

    def test_lock_of_another_thread(self):
        [finding] = self.search(self.program(NOT_ITS_OWN))["findings"]
        self.assertIn("unlock of an OpenMP lock that another thread has set", finding["title"])

    def test_what_is_not_known_is_named(self):
        result = self.run_json(self.program(DETACHED), "--out", "", "--schedules", 20)
        self.assertEqual(result["findings"], [])
        self.assertIn("what slalom does not know of OpenMP (detached tasks", " ".join(result["uncontrolled"]))

    def test_module_that_brings_it_along(self):
        self.build(MODULE, name="module.so", flags=["-fopenmp", "-fPIC", "-shared"])
        self.assertEqual(self.search(self.build(LOADS), "--schedules", 50)["findings"], [])

    def test_barrier_that_is_not_met(self):
        finding = self.deadlocks(self.program(ALONE))
        self.assertIn("barrier", finding["title"])

    def test_task_that_is_not_waited_for(self):
        self.assertEqual(self.search(self.program(TASK, '-DWAIT=_Pragma("omp taskwait")', seen=True))["findings"], [])
        result = self.search(self.program(TASK, "-DWAIT=", seen=True), "--keep-going", "--schedules", 300)
        self.assertEqual({finding["kind"] for finding in result["findings"]}, {"assertion", "data-race"})

    def test_handler_of_the_program(self):
        self.assertEqual(self.search(self.program(HANDLER), "--schedules", 100)["findings"], [])

    def test_number_of_threads(self):
        self.assertEqual(self.search(self.program(THREADS, "-DWANTED=2"), "--schedules", 5)["findings"], [])
        del os.environ["OMP_NUM_THREADS"]
        self.assertEqual(self.search(self.program(THREADS, "-DWANTED=4"), "--schedules", 5)["findings"], [])


if __name__ == "__main__":
    unittest.main()
