"""Reduction on programs that handle signals. A thread takes a signal before its next operation, so every operation depends on the
threads that send it one. The effect on a waiting call depends on the threads that end the wait."""

import unittest

from support import ProgramTest

# main sends a signal to a thread while a second thread does the operation that the first may wait for. The exit status encodes
# where the handler ran and how the wait ended.
PROGRAM = r"""
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t tokens;
static int a[2], b[2], set;
static struct sembuf take = {0, -1, 0}, take_two = {0, -2, 0}, put = {0, 1, 0};
static struct timespec hour = {3600, 0};
static unsigned futex;
static char byte;
static volatile int word, seen, flag;
static pthread_t first;
static void handle(int number) { (void)number; seen = word + 1; @HANDLER@; }
static int result(int got) { return got >= 0 ? 1 : errno == EINTR ? 2 : 3; }
static void *work(void *unused) { (void)result; @THREAD@; return unused; }
static void *other(void *unused) { @OTHER@; return unused; }
int main(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = FLAGS};
  pthread_t second;
  sigset_t all;
  (void)hour, (void)take, (void)take_two, (void)put;
  sigaction(SIGUSR1, &action, 0);
  set = semget(IPC_PRIVATE, 1, 0600);
  if (pipe(a) != 0 || pipe(b) != 0) return 1;
  pthread_barrier_init(&barrier, 0, 2);
  sigfillset(&all);
  if (BLOCKED) pthread_sigmask(SIG_BLOCK, &all, 0);
  pthread_create(&first, 0, work, 0);
  pthread_create(&second, 0, other, 0);
  @MAIN@;
  pthread_join(second, 0);
  pthread_join(first, 0);
  return seen * 4 + word;
}
"""
KILL = "pthread_kill(first, SIGUSR1)"
NO_SIGNALS = "sigset_t none; sigemptyset(&none);"
POLL = "struct pollfd both[] = {{a[0], POLLIN, 0}, {b[0], POLLIN, 0}}; word = result(poll(both, 2, %s));"
# For each call: the code of the threads, the exit statuses other than 0, and the number of classes. For semop: the signal ends
# the wait (6); the thread gets the value before the signal comes (5 if the handler runs in between, 9 if at the thread's end); or
# the wait is over before the signal is sent (1).
ENDED_WAIT = {1, 5, 6, 9}
KINDS = {
    "semop": (dict(THREAD="word = result(semop(set, &take, 1))", OTHER="semop(set, &put, 1)"), ENDED_WAIT, 4),
    "semop of two": (dict(THREAD="word = result(semop(set, &take_two, 1))", OTHER="semop(set, &put, 1); semop(set, &put, 1)"), ENDED_WAIT, 5),
    "semop with a limit": (dict(THREAD="word = result(semtimedop(set, &take, 1, &hour))", OTHER="semop(set, &put, 1)"), {1, 3, 5, 6, 9, 19}, 6),
    "sem_wait": (dict(THREAD="word = result(sem_wait(&tokens))", OTHER="sem_post(&tokens)"), ENDED_WAIT, 4),
    "sem_wait that goes on": (dict(FLAGS="SA_RESTART", THREAD="word = result(sem_wait(&tokens))", OTHER="sem_post(&tokens)"), {1, 5, 9}, 4),
    "two signals": (dict(THREAD="word = result(sem_wait(&tokens))", OTHER="sem_post(&tokens);" + KILL), {5, 6, 9, 14, 1}, 18),
    "read": (dict(THREAD="word = result(read(a[0], &byte, 1))", OTHER="write(a[1], &byte, 1)"), ENDED_WAIT, 4),
    "poll": (dict(THREAD=POLL % "-1", OTHER="write(b[1], &byte, 1)"), ENDED_WAIT, 4),
    "sleep": (dict(THREAD="word = result(nanosleep(&hour, 0)); sched_yield(); word = 3"), {3, 7, 11, 19}, 4),
    "mutex": (dict(THREAD="pthread_mutex_lock(&lock); word = 1; pthread_mutex_unlock(&lock)",
                   OTHER="pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock)"), {1, 5, 9}, 10),
    "condition": (dict(THREAD="pthread_mutex_lock(&lock); if (!flag) pthread_cond_wait(&ready, &lock); word = 1 + flag; pthread_mutex_unlock(&lock)",
                       OTHER="pthread_mutex_lock(&lock); flag = 1; pthread_cond_signal(&ready); pthread_mutex_unlock(&lock)"), {2, 5, 6, 14}, 17),
    "futex": (dict(THREAD="word = result(syscall(SYS_futex, &futex, FUTEX_WAIT, 0, &hour, 0, 0))",
                   OTHER="syscall(SYS_futex, &futex, FUTEX_WAKE, 1, 0, 0, 0)"), {1, 3, 5, 7, 9, 19}, 13),
    "barrier": (dict(THREAD="pthread_barrier_wait(&barrier); word = flag ? 1 : 2", OTHER="flag = 1; pthread_barrier_wait(&barrier)"), {1, 5, 9}, 10),
    "pause": (dict(THREAD="pause(); word = 1"), {5}, 2),  # also a deadlock
    "sigsuspend": (dict(BLOCKED="1", THREAD=NO_SIGNALS + "sched_yield(); sigsuspend(&none); word = 1"), {5}, 2),
    "sigwait": (dict(BLOCKED="1", THREAD="int number; sigset_t all; sigfillset(&all); sched_yield(); sigwait(&all, &number); word = 1"), {1}, 2),
    "a mask": (dict(BLOCKED="1", THREAD=NO_SIGNALS + "sched_yield(); word = 1; pthread_sigmask(SIG_SETMASK, &none, 0); word = 2; sched_yield(); word = 3;"
                    "sched_yield()"), {3, 11, 15, 19}, 5),
    "a handler that locks": (dict(HANDLER="pthread_mutex_lock(&lock); flag = 1; pthread_mutex_unlock(&lock)", THREAD="sched_yield(); word = 1",
                                  OTHER="pthread_mutex_lock(&lock); if (flag) word = 3; pthread_mutex_unlock(&lock)"), {1, 5, 7, 9, 11}, 5),
    "another handler": (dict(THREAD="sched_yield(); word = 1", OTHER="signal(SIGUSR1, SIG_IGN)"), {1, 5, 9}, 6),
    "a thread that has ended": (dict(THREAD="sched_yield()", OTHER=KILL, MAIN="pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock)"), {4}, 3),
}


class DporSignals(ProgramTest):
    def explore(self, program, strategy):
        result = self.run_json(program, "--strategy", strategy, "--choices", "everywhere", "--keep-going", "--no-shrink", "--out", "")
        self.assert_finished(result)
        titles = sorted(finding["title"] for finding in result["findings"])
        return result, titles, {int(title.rpartition(" ")[2]) for title in titles if title.startswith("assertion")}

    def build_kind(self, parts):
        text = PROGRAM
        for word in ("HANDLER", "THREAD", "OTHER", "MAIN"):
            text = text.replace(f"@{word}@", parts.get(word, KILL if word == "MAIN" else ""))
        return self.build(text, flags=[f"-D{word}={parts.get(word, '0')}" for word in ("FLAGS", "BLOCKED")])

    def test_as_many_classes_as_plain_search(self):
        for name, (parts, statuses, classes) in KINDS.items():
            with self.subTest(name):
                program = self.build_kind(parts)
                every, all_titles, seen = self.explore(program, "dfs:bound=none,unfair")
                reduced, titles, _ = self.explore(program, "dpor")
                self.assertEqual((titles, reduced["classes"]), (all_titles, every["classes"]))
                self.assertEqual(reduced["executions"], reduced["classes"], "one was executed twice")
                self.assertEqual((seen, reduced["classes"]), (statuses, classes))

    def test_a_signal_to_the_process(self):
        # The thread that takes the signal is a data choice, so a class can have more than one execution.
        program = self.build_kind(dict(MAIN="kill(getpid(), SIGUSR1)", THREAD="sched_yield(); word = 1", OTHER="sched_yield()"))
        every, all_titles, _ = self.explore(program, "dfs:bound=none,unfair")
        reduced, titles, _ = self.explore(program, "dpor")
        self.assertEqual((titles, reduced["classes"]), (all_titles, every["classes"]))


if __name__ == "__main__":
    unittest.main()
