"""The order that OpenMP gives, as gcc compiles it: no race is reported between ordered accesses, and one is where there is no
order."""

import unittest

from support import OpenMpTest

# Everything that has an order, used as it is meant to be.
CORRECT = r"""
#include <assert.h>
#include <omp.h>
static int fib(int n) {
  int a, b;
  if (n < 2) return n;
  #pragma omp task shared(a)
  a = fib(n - 1);
  #pragma omp task shared(b)
  b = fib(n - 2);
  #pragma omp taskwait
  return a + b;
}
static void loops(void) {
  int data[8] = {0}, sum = 0;
  #pragma omp parallel for
  for (int i = 0; i < 8; ++i) data[i] = i;
  #pragma omp parallel for reduction(+ : sum) schedule(dynamic, 3)
  for (int i = 0; i < 8; ++i) sum += data[i];
  #pragma omp parallel for reduction(+ : sum) schedule(guided)
  for (unsigned long long i = 0; i < 8; ++i) sum += data[i];
  #pragma omp parallel for reduction(+ : sum) schedule(runtime)
  for (int i = 0; i < 8; ++i) sum += data[i];
  assert(sum == 84);
}
static void teams(void) {
  int each[2] = {0}, total = 0, once = 0, one = 0, other = 0, order[4], next = 0, locked = 0, nested = 0, unnamed = 0, named = 0;
  double halves = 0;
  omp_lock_t lock;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
  #pragma omp parallel reduction(+ : total, halves)
  {
    const int me = omp_get_thread_num();
    assert(omp_get_num_threads() == 2);
    each[me] = me + 1;
    #pragma omp barrier
    total += each[1 - me];
    halves += 0.5;
    #pragma omp single
    once = 7;
    assert(once == 7);
    #pragma omp sections
    {
      #pragma omp section
      one = once + 1;
      #pragma omp section
      other = once;
    }
    assert(one == 8 && other == 7);
    #pragma omp for ordered schedule(dynamic)
    for (int i = 0; i < 4; ++i) {
      #pragma omp ordered
      order[next++] = i;
    }
    if (omp_test_lock(&lock)) omp_unset_lock(&lock);
    omp_set_lock(&lock);
    ++locked;
    omp_unset_lock(&lock);
    omp_set_nest_lock(&nest);
    assert(omp_test_nest_lock(&nest) == 2);
    ++nested;
    omp_unset_nest_lock(&nest);
    omp_unset_nest_lock(&nest);
    #pragma omp critical
    ++unnamed;
    #pragma omp critical(named)
    ++named;
    int mine;
    #pragma omp single copyprivate(mine)
    mine = 3;
    assert(mine == 3);
  }
  assert(total == 3 && halves == 1 && next == 4 && order[0] == 0 && order[3] == 3);
  assert(locked == 2 && nested == 2 && unnamed == 2 && named == 2);
  omp_destroy_lock(&lock);
  omp_destroy_nest_lock(&nest);
}
static void tasks(void) {
  int fibonacci = 0, made[3], x = 0, y = 0, sum = 0;
  #pragma omp parallel
  #pragma omp single
  {
    fibonacci = fib(3);
    #pragma omp taskgroup
    {
      for (int i = 0; i < 3; ++i)
        #pragma omp task
        made[i] = i;
    }
    assert(made[2] == 2);
    #pragma omp task depend(out : x)
    x = 1;
    #pragma omp task depend(in : x) depend(out : y)
    y = x + 1;
    #pragma omp taskwait depend(in : y)
    assert(y == 2);
    #pragma omp taskloop reduction(+ : sum)
    for (int i = 0; i < 3; ++i) sum += made[i];
    assert(sum == 3);
    #pragma omp task
    x = 5;
  }
  assert(fibonacci == 2 && x == 5);
}
static void in_each_other(void) {
  int inner[2] = {0};
  omp_set_max_active_levels(2);
  #pragma omp parallel num_threads(2)
  {
    int mine = 0;
    #pragma omp parallel num_threads(2) reduction(+ : mine)
    mine += 1;
    inner[omp_get_thread_num()] = mine;
  }
  assert(inner[0] == 2 && inner[1] == 2);
}
int main(void) {
  WHAT();
  return 0;
}
"""

# Unordered accesses, and constructs that order them: an iteration that needs the one before, whichever thread has taken that;
# work before a barrier; tasks.
UNORDERED = {
    "loop": ("""
  int all[4] = {0};
  #pragma omp parallel for schedule(dynamic)
  for (int i = 1; i < 4; ++i) all[i] = all[NEEDED] + 1;""", "#define NEEDED i", "#define NEEDED i - 1"),
    "nowait": ("""
  int all[2] = {0}, sum = 0;
  #pragma omp parallel reduction(+ : sum)
  {
    NEXT
    for (int i = 0; i < 2; ++i) all[i] = 1;
    sum += all[0] + all[1];
  }""", '#define NEXT _Pragma("omp for")', '#define NEXT _Pragma("omp for nowait")'),
    "master": ("""
  int x = 0, sum = 0;
  #pragma omp parallel reduction(+ : sum)
  {
    #pragma omp master
    x = 1;
    WAIT
    sum += x;
  }""", '#define WAIT _Pragma("omp barrier")', "#define WAIT"),
    "ordered": ("""
  int last = 0;
  #pragma omp parallel for ordered schedule(dynamic)
  for (int i = 0; i < 3; ++i) {
    int mine = i;
    IN_ORDER
    last = mine;
  }""", '#define IN_ORDER _Pragma("omp ordered")', "#define IN_ORDER"),
    "source": ("""
  int all[4] = {0};
  #pragma omp parallel for ordered(1) schedule(dynamic)
  for (int i = 1; i < 4; ++i) {
    WAIT
    all[i] = all[i - 1] + 1;
    #pragma omp ordered depend(source)
  }""", '#define WAIT _Pragma("omp ordered depend(sink : i - 1)")', "#define WAIT"),
    "tasks": ("""
  int x = 0;
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp task FIRST
    x = 1;
    #pragma omp task SECOND
    x = x + 1;
  }""", "#define FIRST depend(out : x)\n#define SECOND depend(inout : x)", "#define FIRST\n#define SECOND"),
    "group": ("""
  int x = 0, y = 0;
  #pragma omp parallel
  #pragma omp single
  {
    GROUP
    {
      #pragma omp task
      {
        #pragma omp task
        x = 1;
      }
    }
    y = x;
  }
  (void)y;""", '#define GROUP _Pragma("omp taskgroup")', "#define GROUP"),
    "locks": ("""
  int x = 0;
  #pragma omp parallel
  if (omp_get_thread_num() == 0) {
    #pragma omp critical(one)
    ++x;
  } else {
    #pragma omp critical(OTHER)
    ++x;
  }""", "#define OTHER one", "#define OTHER two"),
}


class OpenMpOrder(OpenMpTest):
    def test_no_false_race(self):
        for part in ("loops", "teams", "tasks", "in_each_other"):
            for strategy in ("random", "pct", "pos"):
                with self.subTest(part, strategy=strategy):
                    program = self.program(CORRECT, f"-DWHAT={part}", seen=True)
                    result = self.search(program, "--strategy", strategy, "--schedules", 60, "--run-twice")
                    self.assertEqual(result["findings"], [])

    def test_what_nothing_orders(self):
        for name, (body, fixed, broken) in UNORDERED.items():
            for define, kinds in ((fixed, set()), (broken, {"data-race"})):
                with self.subTest(name, kinds=kinds):
                    text = f"#include <omp.h>\n{define}\nint main(void) {{{body}\n  return 0;\n}}\n"
                    result = self.search(self.program(text, seen=True), "--strategy", "random", "--schedules", 100)
                    self.assertEqual({finding["kind"] for finding in result["findings"]}, kinds)


if __name__ == "__main__":
    unittest.main()
