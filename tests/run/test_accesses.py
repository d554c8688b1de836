"""Programs built with -fsanitize=thread: their memory accesses are operations."""

import re
import unittest
from pathlib import Path

from support import ProgramTest, line_of, two_threads

# Two threads add to a counter twice, with a load and a store. The finding's title contains the result.
RESULT = 'char text[32]; snprintf(text, sizeof text, "result %d", (int)counter); __assert_fail(text, __FILE__, __LINE__, __func__);'

# A loop that waits and yields. The plain accesses before and after the yield are no choice points.
POLITE = r"""
#include <atomic>
#include <thread>
std::atomic<int> ready;
int wanted = 1, looked;
int main() {
  std::thread setter([] { ready = 1; });
  std::thread waiter([] {
    int tries = 0;
    while (ready.load() < *static_cast<volatile int *>(&wanted)) {
      std::this_thread::yield();
      looked = ++tries;
    }
  });
  setter.join();
  waiter.join();
}
"""


def counting(kind, add):
    return two_threads(f"static {kind} counter;", f"for (int i = 0; i < 2; ++i) {add}", RESULT)


ATOMIC = counting("_Atomic int", "counter = counter + 1;")
PLAIN = counting("volatile int", "counter = counter + 1;")
EXACT = counting("_Atomic int", "++counter;")
LOCKED = two_threads(
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static int x;",
    "pthread_mutex_lock(&lock); ++x; pthread_mutex_unlock(&lock);",
    "return x == 2 ? 0 : 1;")


# Additions under one lock, with or without atomic operations.
UNDER_LOCK = two_threads(
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static KIND int x;",
    "pthread_mutex_lock(&lock); for (int i = 0; i < 5; ++i) ++x; pthread_mutex_unlock(&lock);",
    "return x == 10 ? 0 : 1;")
# The flag is the only synchronisation. The counter is atomic, but the threads change it only under the lock.
FLAG = two_threads(
    "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; static _Atomic int taken, counter, inside;",
    """while (taken) {}
  taken = 1;
  if (++inside == 2) { pthread_mutex_lock(&lock); ++counter; pthread_mutex_unlock(&lock); }
  --inside;
  taken = 0;""",
    "assert(counter == 0);")

# The second thread writes after both reads unless the first thread is interrupted between them.
WRITES_BEHIND_READS = """#include <assert.h>
#include <pthread.h>
static _Alignas(64) volatile int begun, x;
static void *read_it(void *unused) {
  begun = 1;
  const int first = x;
  const int second = x;
  assert(first == second);
  return unused;
}
static void *write_it(void *unused) {
  if (!begun) return unused;
  x = 1;
  return unused;
}
int main(void) {
  pthread_t reads, writes;
  pthread_create(&reads, 0, read_it, 0);
  pthread_create(&writes, 0, write_it, 0);
  pthread_join(reads, 0);
  pthread_join(writes, 0);
}
"""

# One thread adds without the lock, but only if it runs exactly in the middle of the other thread's turns. Few schedules do that.
RARE = """#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int x;
static int turns;
__attribute__((noinline)) static void add(void) { ++x; }
static void *other(void *unused) {
  pthread_mutex_lock(&lock);
  const int now = turns;
  if (now == 20 && MAY_UNLOCK) pthread_mutex_unlock(&lock);
  add();
  if (now != 20 || !MAY_UNLOCK) pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  for (int i = 0; i < 40; ++i) {
    pthread_mutex_lock(&lock);
    ++turns;
    if (i == 39) add();
    pthread_mutex_unlock(&lock);
  }
  pthread_join(thread, 0);
  return 0;
}
"""


def results(found):
    titles = [finding["title"] for finding in found["findings"] if finding["kind"] == "assertion"]
    return {int(re.search(r"result (\d+)", title).group(1)) for title in titles}


class Accesses(ProgramTest):
    def explore(self, text, name, *options):
        program = self.build(text, name, flags=["-fsanitize=thread"])
        return self.run_json(program, "--keep-going", "--no-shrink", "--out", "", *options)

    def test_every_strategy_switches_at_plain_accesses_that_race(self):
        program = self.build(two_threads("static int counter;", "int value = counter; counter = value + 1;", "assert(counter == 2);"),
                             name="racing", flags=["-fsanitize=thread"])
        for strategy in ("portfolio", "dfs", "pos"):
            result = self.run_json(program, "--strategy", strategy, "--schedules", "200")
            self.assertIn("assertion", [finding["kind"] for finding in result["findings"]], strategy)

    def test_a_write_behind_reads_makes_places_to_switch(self):
        found = self.explore(WRITES_BEHIND_READS, "behind", "--strategy", "pos", "--schedules", 500, "--detectors", "failure")
        self.assertEqual([finding["kind"] for finding in found["findings"]], ["assertion"])

    def test_accesses_that_are_not_seen_are_said(self):
        racing = two_threads("static int counter;", "counter = counter + 1;", "")
        for flags, not_seen in (([], True), (["-fsanitize=thread"], False)):
            program = self.build(racing, "said", flags=flags)
            result = self.run_json(program, "--out", "")
            self.assertEqual("not_seen" in result, not_seen)
            self.assertEqual("accesses-not-seen" in {caveat["kind"] for caveat in result["caveats"]}, not_seen)
            told = " ".join(self.slalom("run", "--out", "", "--", program).stdout.split())
            self.assertEqual("orders of memory accesses, which are not seen" in told, not_seen)

    def test_atomic_operations_are_choice_points(self):
        found = self.explore(ATOMIC, "atomic", "--strategy", "dfs:limit=2")
        self.assertEqual(results(found), {2, 3, 4})
        self.assertTrue(found["exhausted"])
        self.assertEqual(results(self.explore(EXACT, "exact", "--strategy", "dfs:limit=2")), {4})

    def test_an_exchange_that_fails_only_reads(self):
        exchange = "int wanted = WANTED; __atomic_compare_exchange_n(&x, &wanted, 7, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);"
        for wanted, orders in ((5, 1), (0, 2)):
            text = two_threads(f"#define WANTED {wanted}\nstatic int x;", exchange, "")
            self.assertEqual(self.explore(text, "exchange", "--strategy", "dpor", "--choices", "everywhere")["classes"], orders)

    def test_atomic_operations_that_a_lock_orders_are_none(self):
        for strategy in ("dfs", "portfolio", "dpor:coarse"):
            counts = []
            for kind in ("_Atomic", "volatile"):
                program = self.build(UNDER_LOCK, "under-lock", flags=["-fsanitize=thread", f"-DKIND={kind}"])
                found = self.run_json(program, "--out", "", "--strategy", strategy)
                self.assertEqual(found["findings"], [])
                self.assertTrue(found["exhausted"])
                counts.append((found["executions"], found["classes"]))
            self.assertEqual(counts[0], counts[1], strategy)
        everywhere = self.run_json(program, "--out", "", "--strategy", "dfs:limit=1", "--choices", "everywhere")
        self.assertGreater(everywhere["executions"], counts[0][0])

    def test_what_turns_out_to_be_unordered_is_not_claimed(self):
        for unlock in (0, 1):
            program = self.build(RARE, "rare", flags=["-fsanitize=thread", f"-DMAY_UNLOCK={unlock}"])
            # dfs starts again with choice points at these operations; dpor cannot.
            for strategy, restarts in (("dfs:limit=1", True), ("dpor:limit=1", False)):
                found = self.run_json(program, "--out", "", "--strategy", strategy)
                self.assertEqual(found["findings"], [])
                self.assertEqual(found["exhausted"], restarts or unlock == 0, strategy)
                self.assertEqual("taken to be always ordered" in found["coverage"]["statement"], unlock == 1 and not restarts)
                self.assertEqual("late-atomics" in {caveat["kind"] for caveat in found["caveats"]}, unlock == 1 and not restarts)

    def test_atomic_operations_that_nothing_orders_stay_choice_points(self):
        for strategy in ("dfs:limit=2", "portfolio", "random"):
            found = self.explore(FLAG, "flag", "--strategy", strategy, "--schedules", 2000)
            self.assertEqual({finding["kind"] for finding in found["findings"]}, {"assertion"}, strategy)

    def test_plain_accesses_are_choice_points_everywhere(self):
        options = ("--choices", "everywhere", "--strategy", "random", "--schedules", 500)
        self.assertEqual(results(self.explore(PLAIN, "plain", *options)), {2, 3, 4})

    def test_races(self):
        found = self.explore(PLAIN, "race", "--schedules", 20)
        self.assertIn("data-race", {finding["kind"] for finding in found["findings"]})
        without = self.explore(PLAIN, "race", "--schedules", 20, "--detectors", "failure,deadlock")
        self.assertNotIn("data-race", {finding["kind"] for finding in without["findings"]})
        self.assertEqual(self.explore(LOCKED, "locked", "--schedules", 200)["findings"], [])
        self.assertEqual(self.explore(ATOMIC, "no-race", "--schedules", 20, "--detectors", "race")["findings"], [])

    def test_plain_accesses_after_a_yield_do_not_hide_it(self):
        program = self.build(POLITE, "polite", ".cc", ["-fsanitize=thread"])
        for strategy in ("pct:depth=1", "pct:depth=2"):
            found = self.run_json(program, "--out", "", "--strategy", strategy, "--schedules", 60)
            self.assertEqual(found["findings"], [])
            self.assertEqual(found["truncated"], 0, strategy)

    def test_a_loop_that_waits_without_yielding_gives_way(self):
        wait = "if (unused) while (!ready) {} else ready = 1;"
        text = two_threads("static _Atomic int ready;", wait, "").replace("&b, 0, add, 0", "&b, 0, add, &b")
        found = self.explore(text, "waits", "--strategy", "dfs", "--max-steps", 3000, "--schedules", 200)
        self.assertEqual((found["findings"], found["truncated"]), ([], 0))

    def test_weak_memory(self):
        text = (Path(__file__).resolve().parents[2] / "examples/programs/dekker_no_fence.cc").read_text()
        program = self.build(text, "dekker", ".cc", ["-fsanitize=thread"])
        options = ("--out", "", "--no-shrink", "--schedules", 20)
        self.assertEqual(self.run_json(program, *options)["findings"], [], "no interleaving breaks it")
        found = self.run_json(program, "--detectors", "weak-memory", *options)["findings"]
        raised, looked = line_of(text, "store(true"), line_of(text, "load(")
        self.assertEqual([finding["kind"] for finding in found], ["weak-memory"])
        self.assertRegex(found[0]["title"], rf"^weak memory: .*:{raised} \(.*store.* may take effect after .*:{looked} \(")


if __name__ == "__main__":
    unittest.main()
