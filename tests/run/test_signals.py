"""Signals that a program sends to itself, its timers, select, and files in a scratch folder: part of the search, the same
in every execution."""

import unittest

from support import ProgramTest

# Does everything once. The results do not depend on the schedule.
TIMERS = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static volatile int got, called;
static void on(int signal) { got = signal; }
static void call(union sigval value) { called += value.sival_int; }
static void *send(void *unused) {
  kill(getpid(), SIGUSR1);
  return unused;
}
int main(void) {
  int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec every = {{0, 1000000}, {0, 1000000}}, once = {{0, 0}, {5, 0}}, left;
  timerfd_settime(fd, 0, &every, 0);
  for (int i = 0; i < 5; ++i) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    assert(select(fd + 1, &set, 0, 0, 0) == 1 && FD_ISSET(fd, &set));
    uint64_t count;
    assert(read(fd, &count, 8) == 8 && count >= 1);
  }
  close(fd);
  struct timeval second = {1, 0};
  assert(select(0, 0, 0, 0, &second) == 0);

  signal(SIGUSR1, on);
  sigset_t usr1, none;
  sigemptyset(&none);
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, 0);
  pthread_t thread;
  pthread_create(&thread, 0, send, 0);
  while (!got) assert(sigsuspend(&none) == -1 && errno == EINTR);
  pthread_join(thread, 0);
  assert(got == SIGUSR1);

  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = call, .sigev_value.sival_int = 3};
  timer_t timer;
  assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  timer_settime(timer, 0, &once, 0);
  timer_gettime(timer, &left);
  while (!called) usleep(1);
  assert(called == 3);
  timer_delete(timer);

  signal(SIGALRM, on);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, 0);
  got = 0;
  alarm(10);
  while (!got) assert(sigsuspend(&none) == -1 && errno == EINTR);
  assert(got == SIGALRM);
  alarm(10);
  assert(alarm(0) <= 10);
  return 0;
}
"""

# All ways to send oneself a signal, and the information that the receiver gets. None may reach a real process with that number.
TO_ITSELF = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int count, code, sum, value, self;
static void on(int signal, siginfo_t *info, void *unused) {
  (void)unused;
  assert(info->si_signo == signal);
  if (info->si_code != SI_TIMER) assert(info->si_pid == getpid() && info->si_uid == getuid());
  ++count;
  code = info->si_code;
  value = info->si_value.sival_int;
  sum = sum * 10 + value;
  self = gettid();
}
static siginfo_t with(int number) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = number;
  return info;
}
static sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}
static void *wait_for_value(void *unused) {
  sigset_t set = set_of(SIGUSR2);
  siginfo_t info;
  assert(sigwaitinfo(&set, &info) == SIGUSR2 && info.si_code == SI_QUEUE && info.si_value.sival_int == 77);
  return unused;
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, 0);
  sigaction(SIGRTMIN, &action, 0);
  siginfo_t info = with(5);
  assert(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 3}) == 0);
  assert(count == 1 && code == SI_QUEUE && value == 3);
  assert(kill(getpid(), SIGUSR1) == 0 && count == 2 && code == SI_USER && value == 0);
  assert(killpg(0, SIGUSR1) == 0 && count == 3 && killpg(getpgrp(), SIGUSR1) == 0 && count == 4);
  assert(syscall(SYS_kill, getpid(), SIGUSR1) == 0 && count == 5);
  assert(syscall(SYS_tkill, gettid(), SIGUSR1) == 0 && count == 6 && code == SI_TKILL);
  assert(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && count == 7);
  assert(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info) == 0 && count == 8 && value == 5);
  info = with(6);
  assert(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &info) == 0 && count == 9 && value == 6);
  assert(pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = 7}) == 0 && count == 10 && value == 7);

  assert(kill(getpid(), 0) == 0 && sigqueue(getpid(), 0, (union sigval){0}) == 0 && count == 10);
  assert(kill(getpid(), 65) == -1 && errno == EINVAL && sigqueue(getpid(), 65, (union sigval){0}) == -1);
  assert(kill(getppid(), SIGUSR1) == -1 && errno == ESRCH && sigqueue(0, SIGUSR1, (union sigval){0}) == -1);
  assert(syscall(SYS_tkill, gettid() + 7, SIGUSR1) == -1 && killpg(-2, SIGUSR1) == -1 && errno == EINVAL);

  /* Signals for real time queue, in order; others do not. */
  sigset_t blocked = set_of(SIGRTMIN);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, 0);
  sum = 0;
  for (int i = 1; i <= 3; ++i) {
    assert(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) == 0);
    assert(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = i}) == 0);
  }
  assert(count == 10);
  sigset_t usr1 = set_of(SIGUSR1), real = set_of(SIGRTMIN);
  pthread_sigmask(SIG_UNBLOCK, &usr1, 0);
  assert(count == 11 && value == 1);
  siginfo_t came;
  struct timespec none = {0, 0};
  assert(sigtimedwait(&real, &came, &none) == SIGRTMIN && came.si_value.sival_int == 1);
  pthread_sigmask(SIG_UNBLOCK, &real, 0);
  assert(count == 13 && sum == 123);

  /* Without a handler, for one who waits, or will. */
  pthread_t thread;
  pthread_create(&thread, 0, wait_for_value, 0);
  assert(sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 77}) == 0);
  pthread_join(thread, 0);

  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 9};
  struct itimerspec once = {{0, 0}, {5, 0}};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &once, 0);
  while (count == 13) usleep(1);
  assert(code == SI_TIMER && value == 9 && self == getpid());
  return 0;
}
"""

# A signal that its receiver blocks and waits for only later, with other threads running meanwhile; one with a cause of its own.
KEPT = r"""
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigset_t set;
static void *wait_late(void *unused) {
  int signal;
  sigset_t pending;
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  assert(sigwait(&set, &signal) == 0 && signal == SIGUSR1);
  sigpending(&pending);
  assert(!sigismember(&pending, SIGUSR1));
  return unused;
}
static void *other(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return unused;
}
static volatile int code, sender;
static void on(int signal, siginfo_t *info, void *unused) {
  (void)signal, (void)unused;
  code = info->si_code;
  sender = info->si_pid;
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO | SA_RESETHAND};
  sigaction(SIGUSR2, &action, 0);
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_MESGQ;
  info.si_pid = 17;
  assert(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR2, &info) == 0 && code == SI_MESGQ && sender == 17);
  sigaction(SIGUSR2, 0, &action);
  assert(action.sa_handler == SIG_DFL);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, 0);
  pthread_t a, b;
  pthread_create(&a, 0, wait_late, 0);
  pthread_create(&b, 0, other, 0);
  pthread_kill(a, SIGUSR1);
  pthread_join(b, 0);
  pthread_join(a, 0);
  return 0;
}
"""

# A watchdog may end a program that hangs, but not one that works.
WATCHDOG = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  HANG(pthread_mutex_lock(&lock);)
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  alarm(60);
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  return 0;
}
"""

# Fails if it sees data that an earlier execution has written.
FILES = r"""
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *work(void *name) {
  assert(access(name, F_OK) != 0);
  FILE *file = fopen(name, "w");
  fputs("done", file);
  fclose(file);
  return name;
}
int main(void) {
  pthread_t a, b;
  assert(access("input", F_OK) == 0);
  pthread_create(&a, 0, work, "a");
  pthread_create(&b, 0, work, "b");
  pthread_join(a, 0);
  pthread_join(b, 0);
  return unlink("input");
}
"""


class Signals(ProgramTest):
    def search(self, program, *options):
        found = self.run_json(program, "--out", "", "--schedules", 150, *options)
        self.assertEqual(found["trouble"], [])
        return [finding["title"] for finding in found["findings"]]

    def test_all_kinds_of_timers(self):
        self.assertEqual(self.search(self.build(TIMERS), "--strategy", "random", "--run-twice"), [])

    def test_all_ways_to_send_itself_signals(self):
        self.assertEqual(self.search(self.build(TO_ITSELF), "--strategy", "random", "--run-twice"), [])

    def test_a_signal_is_kept_for_its_receiver(self):
        program = self.build(KEPT)
        self.assertEqual(self.search(program, "--strategy", "random", "--run-twice"), [])
        self.assertEqual(self.search(program, "--strategy", "dfs:limit=1"), [])

    def test_a_watchdog_waits_for_a_hang(self):
        self.assertEqual(self.search(self.build(WATCHDOG, flags=["-DHANG(x)="])), [])
        titles = self.search(self.build(WATCHDOG, flags=["-DHANG(x)=x"]))
        self.assertEqual(len(titles), 1)
        self.assertIn("killed by signal ALRM", titles[0])

    def test_files_are_as_they_were(self):
        program = self.build(FILES)
        template = self.folder / "template"
        template.mkdir()
        (template / "input").write_text("text")
        self.assertEqual(self.search(program, "--scratch", template, "--workers", 2), [])
        self.assertEqual([entry.name for entry in template.iterdir()], ["input"])
        done = self.slalom("run", "--scratch", "nowhere", "--", program, codes=(2,))
        self.assertIn("there is no folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
