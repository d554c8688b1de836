"""Reduction on programs: a search that claims to be exhausted is."""

import unittest
from pathlib import Path

from support import ProgramTest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "programs"

# The bug is in a thread that may never begin, because the program ends before it.
ENDS_EARLY = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *work(void *unused) {
  pthread_mutex_lock(&lock);
#ifndef FIXED
  assert(done);
#endif
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_detach(thread);
  return 0;
}
"""


# The code of each thread, and the code at the end of main in place of joins. Time limits may run out first or not; the program
# may end before its threads do.
SOON = "struct timespec soon = {1u << 31, 0};"
LOCKED = "pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);"
TIMED_WAIT = (SOON + "pthread_mutex_lock(&lock); pthread_cond_timedwait(&ready, &lock, &soon);"
              "pthread_mutex_unlock(&lock);")
# For a lock that prefers writers.
READ_GATED = "pthread_rwlock_rdlock(&gated); pthread_rwlock_unlock(&gated);"
WRITE_GATED = "pthread_rwlock_wrlock(&gated); pthread_rwlock_unlock(&gated);"
TIMED_SEMAPHORE = SOON + "sem_timedwait(&tokens, &soon);"
WRITE_A, WRITE_B, READ_B = "write(a[1], &byte, 1);", "write(b[1], &byte, 1);", "read(b[0], &byte, 1);"
# The ready descriptors as a number. The second one is the interesting one: formerly slalom stopped at the first one.
POLL = """struct pollfd both[] = {{a[0], POLLIN, 0}, {b[0], POLLIN, 0}};
  poll(both, 2, %d);
  word = (both[0].revents != 0) + 2 * (both[1].revents != 0);"""
SELECT = """fd_set both;
  FD_ZERO(&both);
  FD_SET(a[0], &both);
  FD_SET(b[0], &both);
  select(b[0] + 1, &both, 0, 0, 0);
  word = (FD_ISSET(a[0], &both) != 0) + 2 * (FD_ISSET(b[0], &both) != 0);"""
EPOLL = """struct epoll_event ready[2];
  for (int count = epoll_wait(set, ready, 2, -1); count > 0; --count) word += ready[count - 1].data.u32;"""
JOIN = "for (int i = 0; i < COUNT; ++i) pthread_join(threads[i], 0);"
DETACH = "pthread_detach(threads[0]); if (COUNT > 1) pthread_detach(threads[1]);"
SMALL = {
    "wait": ([TIMED_WAIT, "pthread_cond_signal(&ready);"], None),
    "semaphore": (["sem_post(&tokens);", TIMED_SEMAPHORE], None),
    "try_semaphore": (["sem_post(&tokens);", "sem_trywait(&tokens);"], None),
    "mutex": ([LOCKED, SOON + "if (pthread_mutex_timedlock(&lock, &soon) == 0) pthread_mutex_unlock(&lock);"], None),
    "writer": (["pthread_rwlock_rdlock(&shared); pthread_rwlock_unlock(&shared);",
                SOON + "if (pthread_rwlock_timedwrlock(&shared, &soon) == 0) pthread_rwlock_unlock(&shared);"], None),
    "gate": ([READ_GATED, WRITE_GATED], None),
    "gate_of_two": ([WRITE_GATED, WRITE_GATED], None),
    "gate_twice": (["pthread_rwlock_rdlock(&gated);" + READ_GATED + "pthread_rwlock_unlock(&gated);", WRITE_GATED], None),
    "gate_tried": ([READ_GATED, "if (pthread_rwlock_trywrlock(&gated) == 0) pthread_rwlock_unlock(&gated);"], None),
    "gate_with_limit": ([READ_GATED, SOON + "if (pthread_rwlock_timedwrlock(&gated, &soon) == 0)"
                         " pthread_rwlock_unlock(&gated);"], None),
    "once": (["pthread_once(&once, nothing);", "pthread_once(&once, nothing);"], None),
    "futex": (["struct timespec brief = {1, 0}; syscall(SYS_futex, &word, FUTEX_WAIT, 0, &brief, 0, 0);",
               "syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);"], None),
    "join": ([LOCKED], SOON + "if (pthread_timedjoin_np(threads[0], 0, &soon) != 0) pthread_join(threads[0], 0);"),
    "end": ([LOCKED], DETACH),
    "end_of_two": ([LOCKED, LOCKED], DETACH),
    "end_by_thread": ([LOCKED + "exit(0);", LOCKED], None),
    "end_of_wait": ([TIMED_WAIT], "pthread_cond_signal(&ready);" + DETACH),
    "poll": ([WRITE_A, WRITE_B], POLL % -1 + JOIN),
    "poll_with_limit": ([WRITE_B], POLL % 10 + JOIN),
    "poll_at_once": ([WRITE_B], POLL % 0 + JOIN),
    "poll_in_vain": ([READ_B], WRITE_B + POLL % -1 + JOIN),
    "select": ([WRITE_A, WRITE_B], SELECT + JOIN),
    "epoll": ([WRITE_A, WRITE_B], EPOLL + JOIN),
    "epoll_in_vain": ([READ_B], WRITE_B + EPOLL + JOIN),
}


# No operation of main() comes between its last one and its end, but its thread may run there.
ENDS_AFTER_A_LOCK = r"""
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int gone;
static void *use(void *unused) {
  pthread_mutex_lock(&lock);
  assert(!gone);
  pthread_mutex_unlock(&lock);
  return unused;
}
__attribute__((destructor)) static void destroy(void) {
  pthread_mutex_lock(&lock);
  gone = 1;
  pthread_mutex_unlock(&lock);
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, use, 0);
  pthread_detach(thread);
  if (AT_ONCE) {
    destroy();
    _exit(0);
  }
}
"""


def small(threads, end):
    text = f"#define COUNT {len(threads)}" + r"""
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t gated = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void nothing(void) {}
static sem_t tokens;
static int word, a[2], b[2], set;
static struct epoll_event one = {EPOLLIN, {.u32 = 1}}, other = {EPOLLIN, {.u32 = 2}};
static char byte;
static pthread_t threads[COUNT];
"""
    for number, thread in enumerate(threads):
        text += f"static void *work{number}(void *unused) {{ {thread} return unused; }}\n"
    text += r"""int main(void) {
  if (pipe(a) != 0 || pipe(b) != 0) return 1;
  set = epoll_create1(0);
  epoll_ctl(set, EPOLL_CTL_ADD, a[0], &one);
  epoll_ctl(set, EPOLL_CTL_ADD, b[0], &other);
"""
    for number in range(len(threads)):
        text += f"  pthread_create(&threads[{number}], 0, work{number}, 0);\n"
    text += end or JOIN
    return text + "\n  return word;\n}\n"


class Dpor(ProgramTest):
    def explore(self, *flags):
        program = self.build(ENDS_EARLY, "ends" + "_fixed" * len(flags), flags=flags)
        return self.run_json(program, "--strategy", "dpor", "--choices", "everywhere", "--no-shrink", "--keep-going")

    def test_a_program_that_ends_before_its_threads(self):
        result = self.explore()
        self.assertEqual([finding["kind"] for finding in result["findings"]], ["assertion"])

    def test_its_twin(self):
        result = self.explore("-DFIXED")
        self.assertEqual(result["findings"], [])
        self.assert_finished(result)

    def test_threads_run_until_the_very_end(self):
        for at_once in (0, 1):
            program = self.build(ENDS_AFTER_A_LOCK, f"after_a_lock{at_once}", flags=[f"-DAT_ONCE={at_once}"])
            titles = set()
            for strategy in ("dpor", "dfs:bound=none", "portfolio"):
                result = self.run_json(program, "--strategy", strategy, "--choices", "everywhere", "--keep-going")
                [finding] = result["findings"]
                self.assertEqual((finding["kind"], finding["replayed"]), ("assertion", "10/10"))
                titles.add(finding["title"])
            self.assertEqual(len(titles), 1)

    def test_as_many_classes_as_plain_search(self):
        for name, (threads, end) in SMALL.items():
            with self.subTest(name):
                program = self.build(small(threads, end), name)
                options = ("--choices", "everywhere", "--keep-going", "--no-shrink", "--out", "")
                every = self.run_json(program, "--strategy", "dfs:bound=none,unfair", *options)
                reduced = self.run_json(program, "--strategy", "dpor", *options)
                for result in (every, reduced):
                    self.assert_finished(result)
                self.assertEqual(reduced["classes"], every["classes"])
                self.assertEqual(reduced["executions"], reduced["classes"], "one was executed twice")
                self.assertEqual(*(sorted(finding["title"] for finding in result["findings"]) for result in (reduced, every)))

    def test_a_look_without_waiting_is_an_operation(self):
        program = self.build(small(*SMALL["poll_at_once"]), "looks")
        result = self.run_json(program, "--strategy", "dpor", "--choices", "everywhere", "--keep-going", "--out", "")
        self.assertEqual(result["classes"], 2)  # before the write and after it
        self.assertEqual(len(result["findings"]), 1)

    def test_a_time_limit_in_an_example(self):
        text = (EXAMPLES / "timed_wait.cc").read_text()
        options = ("--strategy", "dpor", "--choices", "everywhere", "--no-shrink", "--out", "", "--schedules", 100)
        result = self.run_json(self.build(text, "timed", suffix=".cc"), *options)
        self.assertEqual([finding["kind"] for finding in result["findings"]], ["assertion"])
        # The twin waits again each time the limit runs out first, without end.
        result = self.run_json(self.build(text, "timed_fixed", suffix=".cc", flags=["-DFIXED"]), *options)
        self.assertEqual(result["findings"], [])
        self.assertFalse(result["exhausted"])


if __name__ == "__main__":
    unittest.main()
