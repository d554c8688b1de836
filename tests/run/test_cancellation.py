"""Cancellation of threads: the places where it happens, deferred and asynchronous, and the results with reduction."""

import unittest

from support import ProgramTest

# A thread makes one waiting call after the other and is cancelled in any of them.
CANCELLED = r"""
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none;
static int ends[2], pair[2], which, cleaned;
static void clean(void *unused) {
  (void)unused;
  cleaned = 1;
  if (which == 0) pthread_mutex_unlock(&lock);
}
static void wait_long(void) {
  char byte, large[1 << 16] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  struct pollfd wanted = {ends[0], POLLIN, 0};
  struct epoll_event event = {.events = EPOLLIN};
  struct timespec far = {1000000, 0};
  sigset_t set;
  fd_set descriptors;
  FD_ZERO(&descriptors);
  FD_SET(ends[0], &descriptors);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  int signal, epoll = epoll_create1(0);
  eventfd_t count;
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  switch (which) {
    case 0: pthread_mutex_lock(&lock); pthread_cond_wait(&never, &lock); break;
    case 1: sem_wait(&none); break;
    case 2: sigwait(&set, &signal); break;
    case 3: pause(); break;
    case 4: for (;;) nanosleep(&far, 0);
    case 5: assert(read(ends[0], &byte, 1) == 1); break;
    case 6: assert(readv(ends[0], &part, 1) == 1); break;
    case 7: for (;;) assert(write(ends[1], large, sizeof large) > 0);
    case 8: recv(pair[0], &byte, 1, 0); break;
    case 9: recvmsg(pair[0], &message, 0); break;
    case 10: for (;;) send(pair[0], large, sizeof large, 0);
    case 11: poll(&wanted, 1, -1); break;
    case 12: ppoll(&wanted, 1, 0, 0); break;
    case 13: select(ends[0] + 1, &descriptors, 0, 0, 0); break;
    case 14: pselect(ends[0] + 1, &descriptors, 0, 0, 0, 0); break;
    case 15: epoll_wait(epoll, &event, 1, -1); break;
    case 16: eventfd_read(eventfd(0, 0), &count); break;
  }
}
static void *work(void *unused) {
  pthread_cleanup_push(clean, 0);
  wait_long();
  pthread_cleanup_pop(0);
  return unused;
}
int main(int count, char **arguments) {
  which = count > 1 ? atoi(arguments[1]) : 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, 0);
  assert(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sem_init(&none, 0, 0) == 0);
  pthread_t thread;
  void *result;
  pthread_create(&thread, 0, work, 0);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  assert(result == PTHREAD_CANCELED && cleaned);
  assert(pthread_mutex_trylock(&lock) == 0);
  return 0;
}
"""
WAITING_CALLS = 17

# The exit status says where the thread ended: its progress, plus 10 if it was cancelled, plus 100 if it cleaned up.
PLACES = r"""
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t tokens;
static int come;
static void clean(void *unused) {
  (void)unused;
  come += 100;
}
static void clean_up_and_unlock(void *unused) {
  clean(unused);
  pthread_mutex_unlock(&lock);
}
static void *work(void *unused) {
  int before;
  (void)before;
  BODY
  return unused;
}
int main(void) {
  sem_init(&tokens, 0, 2);
  pthread_t thread;
  void *result;
  BEFORE
  pthread_create(&thread, 0, work, 0);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return come + (result == PTHREAD_CANCELED ? 10 : 0);
}
"""
DEFERRED_WORK = """pthread_cleanup_push(clean, 0);
  sem_wait(&tokens); come = 1; pthread_mutex_lock(&lock); come = 2; pthread_testcancel(); come = 3;
  pthread_cleanup_pop(0);"""
ASYNCHRONOUS = "pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before); if (before != PTHREAD_CANCEL_DEFERRED) return unused;"
# Neither of the two is a cancellation point.
ASYNCHRONOUS_WORK = f"""pthread_cleanup_push(clean, 0);
  {ASYNCHRONOUS} pthread_mutex_lock(&lock); come = 1; pthread_mutex_unlock(&lock); come = 2; sem_post(&tokens); come = 3;
  pthread_cleanup_pop(0);"""
# The thread does nothing while it may be cancelled, but that takes some time.
WINDOW = f"""pthread_cleanup_push(clean, 0);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0); {ASYNCHRONOUS} sem_wait(&tokens); come = 1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0); come = 2; pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
  come = 3; sem_wait(&tokens); pthread_testcancel(); come = 4;
  pthread_cleanup_pop(0);"""
# A thread that is cancelled in the wait owns the mutex again; otherwise unlocking it would be misuse.
CONDITION = f"""pthread_mutex_lock(&lock); pthread_cleanup_push(clean_up_and_unlock, 0);
  {ASYNCHRONOUS} pthread_cond_wait(&never, &lock);
  pthread_cleanup_pop(0);"""
OUTCOMES = {  # with dfs and with dpor: the exit statuses other than 0
    "deferred": (DEFERRED_WORK, {110, 112, 3}),
    "asynchronous": (ASYNCHRONOUS_WORK, {110, 111, 112, 3}),
    "window": (WINDOW, {111, 112, 4}),
    "condition": (CONDITION, {110}),
}
# The lock is never released, so only a thread that can be cancelled there gets out.
STUCK = "pthread_cleanup_push(clean, 0); %s pthread_mutex_lock(&lock); pthread_cleanup_pop(0);"


class Cancellation(ProgramTest):
    def test_every_wait_can_be_cancelled(self):
        program = self.build(CANCELLED, "cancelled")
        for which in range(WAITING_CALLS):
            done = self.slalom("run", "--out", "", "--workers", 1, "--no-shrink", "--schedules", 25, "--", program, which)
            self.assertEqual(done.returncode, 0, f"{which}: {done.stdout}")

    def statuses(self, strategy, program):
        found = self.run_json(program, "--strategy", strategy, "--choices", "everywhere", "--keep-going", "--no-shrink", "--out", "")
        self.assertEqual(found["trouble"], [])
        self.assert_finished(found)
        return {int(finding["title"].rpartition(" ")[2]) for finding in found["findings"]}, found

    def places(self, name, body, before=""):
        return self.build(PLACES.replace("BODY", body).replace("BEFORE", before), name)

    def test_where_it_takes_place(self):
        for name, (body, expected) in OUTCOMES.items():
            with self.subTest(name):
                program = self.places(name, body)
                every, all_of_it = self.statuses("dfs:bound=none,unfair", program)
                self.assertEqual(every, expected)
                reduced, part = self.statuses("dpor", program)
                self.assertEqual(reduced, expected)
                self.assertEqual((part["executions"], part["classes"]), (all_of_it["classes"],) * 2)

    def test_of_one_that_is_stuck(self):
        hold = "pthread_mutex_lock(&lock);"
        self.assertEqual(self.statuses("dpor", self.places("leaves", STUCK % ASYNCHRONOUS, hold))[0], {110})
        found = self.run_json(self.places("stuck", STUCK % "", hold), "--out", "")
        self.assertEqual([finding["kind"] for finding in found["findings"]], ["deadlock"])


if __name__ == "__main__":
    unittest.main()
