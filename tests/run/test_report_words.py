"""Names in reports: destroyed objects, crashes, variables, locks, threads and their heap objects."""

import unittest

from support import ProgramTest, line_of

# main() destroys KIND while the thread uses it.
DESTROYED = """
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t b;
static sem_t s;
static void *use(void *unused) {
  USE;
  return unused;
}
int main(void) {
  pthread_t thread;
  sem_init(&s, 0, 1);
  pthread_barrier_init(&b, 0, 1);
  pthread_create(&thread, 0, use, 0);
  DESTROY;
  pthread_join(thread, 0);
}
"""
KINDS = {
    "m": ("pthread_mutex_lock(&m); pthread_mutex_unlock(&m)", "pthread_mutex_destroy(&m)"),
    "c": ("pthread_cond_signal(&c)", "pthread_cond_destroy(&c)"),
    "r": ("pthread_rwlock_rdlock(&r); pthread_rwlock_unlock(&r)", "pthread_rwlock_destroy(&r)"),
    "b": ("pthread_barrier_wait(&b)", "pthread_barrier_destroy(&b)"),
    "s": ("sem_post(&s)", "sem_destroy(&s)"),
}

# The thread crashes at the line of CRASH, with all signals blocked.
BLOCKED = """
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int go, *p;
static void *nothing(void *unused) { return unused; }
static void *crash(void *unused) {
  sigset_t all;
  sigfillset(&all);
  BLOCK;
  pthread_mutex_lock(&m);
  int now = go;
  pthread_mutex_unlock(&m);
  CRASH;
  return nothing(unused);
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, crash, 0);
  pthread_mutex_lock(&m);
  go = 1;
  pthread_mutex_unlock(&m);
  pthread_mutex_lock(&m);
  pthread_mutex_unlock(&m);
  pthread_mutex_lock(&m);
  go = 0;
  pthread_mutex_unlock(&m);
  pthread_join(thread, 0);
}
"""
NULL = "if (now) *p = 1"
# libc blocks all signals itself, and its instructions need an aligned stack.
IN_LIBC = 'pthread_t other; if (now) { __asm__ volatile("sub $8, %rsp"); pthread_create(&other, 0, nothing, 0); }'

QUEUES = """
#include <cassert>
#include <mutex>
#include <thread>
struct Queue { std::mutex lock; int items = 0; };
int first, second;
int main() {
  auto *front = new Queue, *back = new Queue;
  std::thread a([&] {
    front->lock.lock();
    std::lock_guard guard(back->lock);
    back->items += 1;
    front->lock.unlock();
  });
  std::thread b([&] {
    std::lock_guard guard(back->lock);
    front->lock.lock();
    front->lock.unlock();
  });
  a.join();
  b.join();
  delete front;
  delete back;
}
"""
START_OF_BSS = """
#include <assert.h>
#include <pthread.h>
__asm__(".section .bss.first,\\"aw\\",@nobits\\nsection_mark:\\n.text");
int counter __attribute__((section(".bss.first")));
static void *add(void *unused) { counter = counter + 1; return unused; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counter == 2);
}
"""


class ReportWordsTest(ProgramTest):
    def report(self, program, *options):
        """Returns the only finding of a program, and the report on it."""
        result = self.run_json(program, *options)
        finding = result["findings"][0]
        self.assertEqual(finding["replayed"], "10/10")
        return finding, self.slalom("replay", "--full", finding["capsule"]).stdout

    def test_the_end_of_an_object_is_shown_as_that(self):
        for name, (use, destroy) in KINDS.items():
            with self.subTest(name):
                program = self.build(DESTROYED, name="destroyed_" + name, flags=[f"-DUSE={use}", f"-DDESTROY={destroy}"])
                finding, _ = self.report(program)
                self.assertIn("destroyed", finding["title"])
                report = self.slalom("replay", "--trace", finding["capsule"]).stdout
                timeline = report[:report.index("\nSchedule")]
                self.assertRegex(timeline, rf"destroy {name}\b")
                self.assertNotIn("no part in this", timeline)
                self.assertRegex(report, rf"\bdestroy +{name}\b")

    def test_a_crash_with_signals_blocked_is_at_its_line(self):
        for name, block, crash in (("mask", "pthread_sigmask(SIG_BLOCK, &all, 0)", NULL), ("libc", "", IN_LIBC)):
            with self.subTest(name):
                program = self.build(BLOCKED, name="blocked_" + name, flags=[f"-DBLOCK={block}", f"-DCRASH={crash}"])
                result = self.run_json(program, "--keep-going")
                line = line_of(BLOCKED, "CRASH;")
                self.assertTrue(result["findings"])
                for finding in result["findings"]:
                    self.assertIn(f"blocked_{name}.c:{line} (crash)", finding["title"])

    def test_a_mask_reads_back_as_it_was_set(self):
        program = self.build("""
#include <assert.h>
#include <signal.h>
int main(void) {
  sigset_t all, before, now;
  sigemptyset(&all);
  sigaddset(&all, SIGSEGV);
  sigaddset(&all, SIGUSR1);
  assert(sigprocmask(SIG_BLOCK, &all, &before) == 0 && !sigismember(&before, SIGSEGV));
  assert(sigprocmask(SIG_BLOCK, 0, &now) == 0 && sigismember(&now, SIGSEGV) && sigismember(&now, SIGUSR1));
  assert(sigprocmask(SIG_SETMASK, &before, &now) == 0 && sigismember(&now, SIGSEGV));
  assert(sigprocmask(SIG_BLOCK, 0, &now) == 0 && !sigismember(&now, SIGSEGV) && !sigismember(&now, SIGUSR1));
}
""", name="masks")
        self.assertEqual(self.run_json(program)["findings"], [])

    def test_a_variable_at_the_start_of_a_section_has_its_own_name(self):
        program = self.build(START_OF_BSS, name="bss", flags=["-fsanitize=thread", "-fno-toplevel-reorder"])
        races = self.run_json(program, "--keep-going")["findings"]
        titles = [race["title"] for race in races if race["kind"] == "data-race"]
        self.assertTrue(titles)
        for title in titles:
            self.assertIn("data race on counter:", title)

    def test_locks_on_the_heap_and_threads_of_lambdas_have_names(self):
        for flags in ([], ["-fsanitize=thread"]):
            with self.subTest(flags):
                program = self.build(QUEUES, name="queues" + str(len(flags)), suffix=".cc", flags=flags)
                finding, report = self.report(program)
                self.assertEqual(finding["kind"], "deadlock")
                self.assertIn("waits for heap held by main::{lambda()#", finding["title"])
                self.assertNotIn("heap@", report)
                # Where allocations are seen, the type of a block is known.
                front, back = ("Queue#1->lock", "Queue#2->lock") if flags else ("front->lock", "back->lock")
                for words in (f"lock {front}", f"lock {back}", f"line {line_of(QUEUES, 'front->lock.lock')}"):
                    self.assertIn(words, report)
                heading = next(line for line in report.splitlines() if "step" in line and "main" in line)
                first = line_of(QUEUES, "front->lock.lock")  # or the start of the lambda
                self.assertRegex(heading, rf"lambda:({first - 1}|{first})#1 .* lambda:({first + 6}|{first + 7})#2")


if __name__ == "__main__":
    unittest.main()
