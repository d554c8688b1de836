"""Corner cases of the threading API, of timers, signals and sockets. Each is a small program that sees the same in every
schedule. Where the machine allows it, the program must also succeed without slalom, because the real functions must agree."""

import subprocess
import unittest

from support import ProgramTest

HEADER = r"""
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
static sem_t came;
static void wait_until_it_came(void) {
  while (sem_wait(&came) != 0) assert(errno == EINTR);
}
"""

# More timers than can exist at a time, one after the other.
MANY_TIMERS = r"""
int main(void) {
  struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
  struct itimerspec late = {{0, 0}, {3600, 0}};
  for (int i = 0; i < 100; ++i) {
    timer_t timer;
    assert(timer_create(CLOCK_MONOTONIC, &nothing, &timer) == 0);
    assert(timer_settime(timer, 0, &late, 0) == 0 && timer_delete(timer) == 0);
    assert(timer_delete(timer) == -1 && errno == EINVAL);
  }
  for (int i = 0; i < 100; ++i) {
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    assert(timer >= 0 && timerfd_settime(timer, 0, &late, 0) == 0 && close(timer) == 0);
  }
}
"""

# The timer continues under its other descriptor.
TIMER_WITH_TWO_NAMES = r"""
int main(void) {
  struct itimerspec soon = {{0, 0}, {0, 1000000}};
  int timer = timerfd_create(CLOCK_MONOTONIC, 0), other = dup(timer);
  assert(timerfd_settime(timer, 0, &soon, 0) == 0 && close(timer) == 0);
  unsigned long times;
  assert(read(other, &times, sizeof times) == sizeof times && times == 1 && close(other) == 0);
}
"""

# Setting a timer again discards its unread expirations. Otherwise an event loop that never reads them would spin for ever.
TIMER_THAT_NOBODY_READS = r"""
int main(void) {
  struct itimerspec soon = {{0, 0}, {0, 1000000}}, none = {{0, 0}, {0, 0}};
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct pollfd wanted = {timer, POLLIN, 0};
  for (int i = 0; i < 2; ++i) {
    assert(timerfd_settime(timer, 0, &soon, 0) == 0 && poll(&wanted, 1, -1) == 1);
    assert(timerfd_settime(timer, 0, i ? &none : &soon, 0) == 0 && (i == 0 || poll(&wanted, 1, 0) == 0));
  }
}
"""

# A timer is deleted while its function runs. The function continues.
DELETED_WHILE_IT_RUNS = r"""
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t started;
static void run(union sigval unused) {
  sem_post(&started);
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  sem_post(&came);
}
int main(void) {
  struct sigevent call = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = run};
  struct itimerspec soon = {{0, 0}, {0, 1000000}};
  timer_t timer, next;
  pthread_mutex_lock(&lock);
  assert(timer_create(CLOCK_MONOTONIC, &call, &timer) == 0 && timer_settime(timer, 0, &soon, 0) == 0);
  assert(sem_wait(&started) == 0 && timer_delete(timer) == 0);
  assert(timer_create(CLOCK_MONOTONIC, &call, &next) == 0 && timer_settime(next, 0, &soon, 0) == 0);
  assert(sem_wait(&started) == 0);  /* the second one does not wait for the first */
  pthread_mutex_unlock(&lock);
  wait_until_it_came();
  wait_until_it_came();
}
"""

MICROSECONDS = r"""
static void on(int number) { sem_post(&came); }
int main(void) {
  signal(SIGALRM, on);
  assert(ualarm(999999, 0) == 0);
  useconds_t left = ualarm(1000, 0);
  assert(left > 0 && left <= 999999);
  wait_until_it_came();
}
"""

TO_ONE_THREAD = r"""
static pthread_t target;
static void on(int number, siginfo_t *info, void *context) {
  assert(pthread_equal(pthread_self(), target) && info->si_code == SI_TIMER && info->si_value.sival_int == 7);
  sem_post(&came);
}
static void *wait(void *unused) {
  target = pthread_self();
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, .sigev_value = {7}};
  struct itimerspec soon = {{0, 0}, {0, 1000000}};
  event._sigev_un._tid = (int)syscall(SYS_gettid);
  timer_t timer;
  assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, 0) == 0);
  wait_until_it_came();
  event._sigev_un._tid = INT_MAX;
  assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == -1 && errno == EINVAL);
  return unused;
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, 0);
  pthread_t thread;
  pthread_create(&thread, 0, wait, 0);
  pthread_join(thread, 0);
}
"""

UNKNOWN_CLOCKS = r"""
int main(void) {
  const clockid_t none = 12345;
  struct timespec now, no_time = {0, 0};
  timer_t timer;
  assert(clock_gettime(none, &now) == -1 && errno == EINVAL);
  assert(clock_nanosleep(none, 0, &no_time, 0) == EINVAL);
  assert(timer_create(none, 0, &timer) == -1 && errno == EINVAL);
  assert(timerfd_create(none, 0) == -1 && errno == EINVAL);
  clockid_t own;
  assert(pthread_getcpuclockid(pthread_self(), &own) == 0 && clock_gettime(own, &now) == 0);
}
"""

# A call returns the data that came, or EAGAIN. If no one sends, it always returns EAGAIN.
SOCKET_LIMITS = r"""
static int ends[2];
static void *feed(void *unused) {
  assert(send(ends[1], "x", 1, 0) == 1);
  return unused;
}
int main(void) {
  struct timeval limit = {0, 1000};
  char got = 0;
  assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  assert(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
  assert(recv(ends[0], &got, 1, 0) == -1 && errno == EAGAIN);
  assert(read(ends[0], &got, 1) == -1 && errno == EAGAIN);
  pthread_t thread;
  pthread_create(&thread, 0, feed, 0);
  ssize_t result = recv(ends[0], &got, 1, 0);
  assert(result == 1 ? got == 'x' : result == -1 && errno == EAGAIN);
  pthread_join(thread, 0);
  int small = 4096;
  char much[4096] = {0};
  assert(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
  assert(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0);
  while ((result = send(ends[0], much, sizeof much, 0)) > 0) {
  }
  assert(result == -1 && errno == EAGAIN);
}
"""

# glibc keeps the priority ceiling in the same word as the lock. Not every machine lets a program raise its priority.
PRIORITY_CEILING = r"""
static pthread_mutex_t lock;
static int counter;
static void *add(void *unused) {
  pthread_mutex_lock(&lock);
  ++counter;
  assert(pthread_mutex_trylock(&lock) == EBUSY);
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  assert(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT) == 0);
  assert(pthread_mutexattr_setprioceiling(&attributes, 30) == 0);
  assert(pthread_mutex_init(&lock, &attributes) == 0);
  pthread_t thread;
  pthread_create(&thread, 0, add, 0);
  add(0);
  pthread_join(thread, 0);
  int ceiling = 0;
  assert(pthread_mutex_getprioceiling(&lock, &ceiling) == 0 && ceiling == 30);
  assert(counter == 2 && pthread_mutex_destroy(&lock) == 0);
}
"""

OWN_WRITER = r"""
int main(void) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  assert(pthread_rwlock_wrlock(&lock) == 0);
  assert(pthread_rwlock_wrlock(&lock) == EDEADLK && pthread_rwlock_rdlock(&lock) == EDEADLK);
  assert(pthread_rwlock_trywrlock(&lock) == EBUSY && pthread_rwlock_tryrdlock(&lock) == EBUSY);
  assert(pthread_rwlock_unlock(&lock) == 0);
  assert(pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_rdlock(&lock) == 0);
  assert(pthread_rwlock_unlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
  assert(pthread_rwlock_destroy(&lock) == 0);
}
"""

FULL_SEMAPHORE = r"""
int main(void) {
  sem_t full;
  int value;
  assert(sem_init(&full, 0, SEM_VALUE_MAX) == 0);
  assert(sem_post(&full) == -1 && errno == EOVERFLOW);
  assert(sem_getvalue(&full, &value) == 0 && value == SEM_VALUE_MAX);
  assert(sem_wait(&full) == 0 && sem_post(&full) == 0 && sem_destroy(&full) == 0);
}
"""

HANDLER_CONTEXT = r"""
static void on(int number, siginfo_t *info, void *data) {
  ucontext_t *context = data;
  assert(context != 0 && context->uc_mcontext.gregs[REG_RIP] != 0);
  assert(sigismember(&context->uc_sigmask, SIGUSR2) == 1 && sigismember(&context->uc_sigmask, SIGUSR1) == 0);
  sem_post(&came);
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, 0);
  sigaction(SIGUSR1, &action, 0);
  raise(SIGUSR1);
  wait_until_it_came();
}
"""

# A thread that blocks the signal from its beginning never takes it.
MASK_OF_A_NEW_THREAD = r"""
static pthread_t main_thread;
static sem_t done;
static void on(int number) {
  assert(pthread_equal(pthread_self(), main_thread));
  sem_post(&came);
}
static void *wait(void *unused) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, 0, &now);
  assert(sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0);
  sem_wait(&done);
  return unused;
}
int main(void) {
  main_thread = pthread_self();
  signal(SIGUSR1, on);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  assert(pthread_attr_setsigmask_np(&attributes, &mask) == 0);
  pthread_t thread;
  assert(pthread_create(&thread, &attributes, wait, 0) == 0);
  kill(getpid(), SIGUSR1);
  wait_until_it_came();
  sem_post(&done);
  pthread_join(thread, 0);
}
"""

# All threads that call it may use the result of the one initialisation, also after an attempt that failed.
ONCE = r"""
#include <mutex>
#include <thread>
static std::once_flag flag;
static int attempts, value;
static void set() {
  if (++attempts == 1 && FAILS) throw 1;
  value = 5;
}
static void use() {
  try {
    std::call_once(flag, set);
    if (value != 5) __builtin_trap();
  } catch (int) {
  }
}
int main() {
  std::thread one(use), two(use);
  one.join();
  two.join();
}
"""

# A thread takes a read lock twice while another thread wants to write. With a lock that prefers writers, the reader waits for the
# writer, which waits for the reader. Other locks let the reader in.
READS_TWICE = r"""
static pthread_rwlock_t lock;
static int value;
static void *write_it(void *unused) {
  assert(pthread_rwlock_wrlock(&lock) == 0);
  ++value;
  assert(pthread_rwlock_unlock(&lock) == 0);
  if (pthread_rwlock_trywrlock(&lock) == 0) pthread_rwlock_unlock(&lock);
  return unused;
}
static void *read_it(void *unused) {
  assert(pthread_rwlock_rdlock(&lock) == 0);
#ifdef TWICE
  assert(pthread_rwlock_rdlock(&lock) == 0 && pthread_rwlock_unlock(&lock) == 0);
#endif
  assert(value == 0 || value == 1);
  assert(pthread_rwlock_unlock(&lock) == 0);
  if (pthread_rwlock_tryrdlock(&lock) == 0) pthread_rwlock_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, KIND);
  pthread_rwlock_init(&lock, &attributes);
  pthread_t writer, reader;
  pthread_create(&writer, 0, write_it, 0);
  pthread_create(&reader, 0, read_it, 0);
  pthread_join(writer, 0);
  pthread_join(reader, 0);
  assert(value == 1 && pthread_rwlock_destroy(&lock) == 0);
}
"""

DESTROYED = {
    "rwlock": ("pthread_rwlock_t it", "pthread_rwlock_init(&it, 0)", "pthread_rwlock_destroy(&it)",
               ["pthread_rwlock_rdlock(&it); pthread_rwlock_unlock(&it)", "pthread_rwlock_trywrlock(&it)",
                "pthread_rwlock_destroy(&it)"], "a reader-writer lock that was destroyed"),
    "semaphore": ("sem_t it", "sem_init(&it, 0, 1)", "sem_destroy(&it)",
                  ["sem_wait(&it)", "sem_post(&it)", "sem_trywait(&it)", "sem_destroy(&it)"],
                  "a semaphore that was destroyed"),
    "barrier": ("pthread_barrier_t it", "pthread_barrier_init(&it, 0, 1)", "pthread_barrier_destroy(&it)",
                ["pthread_barrier_wait(&it)", "pthread_barrier_destroy(&it)"], "a barrier that was destroyed"),
}


class ApiEdgesTest(ProgramTest):
    def findings(self, program, schedules=60):
        answer = self.run_json(program, "--schedules", schedules)
        self.assertGreater(answer["executions"], 0)
        return answer["findings"]

    def check(self, text, name, alone=True, schedules=60):
        program = self.build(HEADER + text, name)
        if alone:
            subprocess.run([program], check=True, timeout=60)
        self.assertEqual(self.findings(program, schedules), [], name)

    def test_timers(self):
        self.check(MANY_TIMERS, "many_timers", schedules=2)
        self.check(TIMER_WITH_TWO_NAMES, "two_names")
        self.check(TIMER_THAT_NOBODY_READS, "nobody_reads")
        self.check(DELETED_WHILE_IT_RUNS, "deleted")
        self.check(MICROSECONDS, "microseconds")
        self.check(TO_ONE_THREAD, "to_one_thread")
        self.check(UNKNOWN_CLOCKS, "unknown_clocks")

    def test_sockets_with_time_limits(self):
        self.check(SOCKET_LIMITS, "socket_limits")

    def test_locks(self):
        self.check(PRIORITY_CEILING, "ceiling", alone=False)
        self.check(OWN_WRITER, "own_writer")
        self.check(FULL_SEMAPHORE, "full_semaphore")

    def test_a_lock_that_prefers_writers(self):
        prefers, default = "PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP", "PTHREAD_RWLOCK_DEFAULT_NP"
        for kind, flags, expected in ((prefers, ["-DTWICE"], ["deadlock"]), (prefers, [], []), (default, ["-DTWICE"], [])):
            program = self.build(HEADER + READS_TWICE, "twice", flags=[f"-DKIND={kind}", *flags])
            for strategy in ("portfolio", "dpor"):
                answer = self.run_json(program, "--schedules", 1000, "--choices", "everywhere",
                                       "--strategy", strategy)
                self.assertEqual([f["kind"] for f in answer["findings"]], expected, (kind, flags, strategy))
                for finding in answer["findings"]:
                    report = self.slalom("replay", finding["capsule"], "--trace").stdout
                    self.assertNotRegex(finding["title"] + report, r"lock\+\d")

    def test_signals(self):
        self.check(HANDLER_CONTEXT, "context")
        self.check(MASK_OF_A_NEW_THREAD, "mask")

    def test_once(self):
        for fails in (0, 1):
            program = self.build(ONCE, f"once{fails}", ".cc", ["-fsanitize=thread", f"-DFAILS={fails}"])
            self.assertEqual(self.findings(program), [], fails)

    def test_use_after_destruction(self):
        for name, (declared, begin, end, uses, words) in DESTROYED.items():
            for number, use in enumerate(uses):
                text = "static {}; int main(void) {{ {}; {}; AGAIN; {}; }}".format(declared, begin, end, use)
                again = self.build(HEADER + text, f"{name}{number}again", flags=[f"-DAGAIN={begin}"])
                self.assertEqual(self.findings(again, 2), [], use)
                broken = self.build(HEADER + text, f"{name}{number}", flags=["-DAGAIN="])
                found = self.findings(broken, 2)
                self.assertEqual(len(found), 1, use)
                self.assertIn(words, found[0]["title"])


if __name__ == "__main__":
    unittest.main()
