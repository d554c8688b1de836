"""Features that everyday programs use, and former bugs with them: false findings, useless places, schedules that were never
tried."""

import unittest

from support import LOST_UPDATE, ProgramTest, line_of

# The owner of a robust mutex ends while it holds it. Its writes come before the next owner's reads.
ROBUST = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
static pthread_mutex_t lock;
static int value;
static void *ends(void *unused) {
  pthread_mutex_lock(&lock);
  value = 1;
  return unused;
}
static void *uses(void *unused) {
  if (pthread_mutex_lock(&lock) == EOWNERDEAD) {
    assert(value == 1);
    pthread_mutex_consistent(&lock);
  }
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock, &robust);
  pthread_create(&a, 0, ends, 0);
  pthread_create(&b, 0, uses, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""

# The future's destructor waits for the task while the thread holds the lock that the task needs.
ASYNC = r"""
#include <future>
#include <mutex>
std::mutex lock;
int count;
void add() {
  std::lock_guard held(lock);
  ++count;
}
int main() {
  std::lock_guard held(lock);
  auto future = std::async(std::launch::async, add);
  ++count;
}  // here
"""

BEFORE_MAIN = r"""
#include <mutex>
#include <thread>
std::mutex lock;
struct Service {
  std::thread thread{[] { std::lock_guard held(lock); }};
  ~Service() { thread.join(); }
} service;
int main() { std::lock_guard held(lock); }
"""

# A thread that did not get the semaphore in time does not hold it.
TIME_LIMIT = r"""
#include <cassert>
#include <chrono>
#include <semaphore>
#include <thread>
std::counting_semaphore<4> slots(1);
void use() {
  const bool got = slots.try_acquire_for(std::chrono::milliseconds(10));
  assert(got);
  std::this_thread::yield();
  slots.release();
}
int main() { std::jthread a(use), b(use); }
"""

# The child has ended when the wait for it begins, or ends soon after. It does not depend on any thread.
ENDS_SOON = r"""
#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count, status;
static void *add(void *unused) {
  pthread_mutex_lock(&lock);
  ++count;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, add, 0);
  if (fork() == 0) {
    usleep(8000);
    _exit(0);
  }
  wait(&status);
  add(0);
  assert(count == 2);
  pthread_join(thread, 0);
}
"""

# Another thread holds the lock, stopped at an access that is a choice point in a replay but was none before.
HELD = r"""
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void handle(int number) { (void)number; }
static void *add(void *unused) {
  pthread_mutex_lock(&lock);
  ++count;
  ++count;
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  if (HANDLES) signal(SIGUSR1, handle);
  pthread_create(&thread, 0, add, 0);
  if (!HANDLES && fork() == 0) _exit(0);
  assert(pthread_mutex_trylock(&lock) == 0);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, 0);
}
"""

AT_EXIT = r"""
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int over;
static void finish(void) {
  pthread_mutex_lock(&lock);
  over = 1;
  pthread_mutex_unlock(&lock);
}
static void *use(void *unused) {
  pthread_mutex_lock(&lock);
  assert(FIXED || !over);
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  atexit(finish);
  pthread_create(&thread, 0, use, 0);
  pthread_detach(thread);
}
"""

# Chance must not decide whether main waits for its child's answer and lets the threads run meanwhile.
ANSWERS_SOON = "#include <unistd.h>\n" + LOST_UPDATE.replace("int main(void) {", """static int ends[2];
static void ask(void) {
  assert(pipe(ends) == 0);
  if (fork() == 0) {
    assert(write(ends[1], "x", 1) == 1);
    _exit(0);
  }
}
static void hear(void) {
  char answer;
  assert(read(ends[0], &answer, 1) == 1);
}
int main(void) {
  ask();""").replace("pthread_join(a, 0);", "hear();\n  pthread_join(a, 0);")


class Everyday(ProgramTest):
    def test_a_robust_mutex_orders(self):
        program = self.build(ROBUST, "robust", flags=["-fsanitize=thread"])
        for strategy in ("portfolio", "dpor"):
            result = self.run_json(program, "--strategy", strategy, "--choices", "everywhere", "--schedules", 300)
            self.assertEqual(result["findings"], [])

    def test_where_an_async_task_is_waited_for(self):
        [finding] = self.run_json(self.build(ASYNC, "async", ".cc"))["findings"]
        self.assertEqual(finding["title"], f"deadlock: async.cc:{line_of(ASYNC, '// here')} (main) waits for the end of async task; "
                                           f"async.cc:{line_of(ASYNC, 'held(lock)')} (add) waits for lock held by main")

    def test_a_thread_of_before_main_is_joined(self):
        program = self.build(BEFORE_MAIN, "before_main", ".cc")
        done = self.slalom("run", "--schedules", 10, "--", program, codes=(2,))
        self.assertIn("joins a thread that it started before main()", done.stdout + done.stderr)

    def test_a_time_limit_of_a_semaphore_is_over(self):
        program = self.build(TIME_LIMIT, "time_limit", ".cc")
        [finding] = self.run_json(program, "--strategy", "dfs:limit=2,unfair", "--schedules", 5000)["findings"]
        self.assertEqual((finding["kind"], finding["replayed"]), ("assertion", "10/10"))

    def test_a_child_that_ends_soon(self):
        [finding] = self.run_json(self.build(ENDS_SOON, "ends_soon"), "--strategy", "dfs")["findings"]
        self.assertEqual((finding["kind"], finding["replayed"]), ("assertion", "10/10"))

    def test_a_child_that_answers_soon(self):
        [finding] = self.run_json(self.build(ANSWERS_SOON, "answers_soon"))["findings"]
        self.assertEqual((finding["kind"], finding["replayed"]), ("assertion", "10/10"))

    def test_replays_beside_handlers_and_forks(self):
        for handles in (0, 1):
            program = self.build(HELD, f"held{handles}", flags=["-fsanitize=thread", f"-DHANDLES={handles}"])
            [finding] = self.run_json(program)["findings"]
            self.assertEqual((finding["kind"], finding["replayed"]), ("assertion", "10/10"))

    def test_what_is_called_at_the_exit(self):
        for fixed in (0, 1):
            for option in ("-g", "-fsanitize=thread"):
                program = self.build(AT_EXIT, "at_exit", flags=[option, f"-DFIXED={fixed}"])
                result = self.run_json(program, "--schedules", 300)
                self.assertEqual([finding["kind"] for finding in result["findings"]], [] if fixed else ["assertion"])


if __name__ == "__main__":
    unittest.main()
