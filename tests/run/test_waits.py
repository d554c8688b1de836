"""Waiting calls: what else ends them (a signal handler, with or without SA_RESTART), their masks, sockets, and mutexes whose
owner has ended. Every program here sees the same in every schedule."""

import unittest

from support import ProgramTest

# send_once() sends a signal that is unblocked only during the call. pester() sends it until the call has ended.
INTERRUPTED = r"""
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static volatile int handled, stop;
static int ends[2], epoll;
static sem_t never;
static pthread_t main_thread;
static void on(int number) { handled = number; }
static void *send_once(void *unused) {
  pthread_kill(main_thread, SIGUSR1);
  return unused;
}
static void *pester(void *unused) {
  while (!stop) {
    pthread_kill(main_thread, SIGUSR1);
    usleep(1);
  }
  return unused;
}
static void *feed(void *unused) {
  pthread_kill(main_thread, SIGUSR1);
  assert(write(ends[1], "x", 1) == 1);
  return unused;
}
static void handle(int flags) {
  struct sigaction action = {.sa_handler = on, .sa_flags = flags};
  sigaction(SIGUSR1, &action, 0);
}
static int call_ppoll(const sigset_t *open) {
  struct pollfd wanted = {ends[0], POLLIN, 0};
  return ppoll(&wanted, 1, 0, open);
}
static int call_pselect(const sigset_t *open) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  return pselect(ends[0] + 1, &set, 0, 0, 0, open);
}
static int call_epoll(const sigset_t *open) {
  struct epoll_event got;
  return epoll_pwait(epoll, &got, 1, -1, open);
}
static void masked(int (*call)(const sigset_t *)) {
  sigset_t usr1, old;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &old);
  pthread_t sender;
  handled = 0;
  pthread_create(&sender, 0, send_once, 0);
  assert(call(&old) == -1 && errno == EINTR && handled == SIGUSR1);
  pthread_join(sender, 0);
  pthread_sigmask(SIG_SETMASK, &old, 0);
}
int main(void) {
  main_thread = pthread_self();
  assert(pipe(ends) == 0 && sem_init(&never, 0, 0) == 0);
  epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
  handle(SA_RESTART);  /* these never restart */
  masked(call_ppoll);
  masked(call_pselect);
  masked(call_epoll);

  handle(0);
  pthread_t other;
  pthread_create(&other, 0, pester, 0);
  char byte;
  assert(read(ends[0], &byte, 1) == -1 && errno == EINTR);
  assert(sem_wait(&never) == -1 && errno == EINTR);
  struct timespec hour = {3600, 0}, rest = {0, 0};
  while (nanosleep(&hour, &rest) == 0) {
  }
  assert(errno == EINTR && rest.tv_sec > 3000);
  stop = 1;
  pthread_join(other, 0);

  handle(SA_RESTART);
  pthread_create(&other, 0, feed, 0);
  assert(read(ends[0], &byte, 1) == 1 && byte == 'x');
  pthread_join(other, 0);
  return 0;
}
"""

# The signal may come between the test and the call, which then waits in vain.
PAUSE = r"""
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static volatile int got;
static pthread_t main_thread;
static void on(int signal) { got = signal; }
static void *send(void *unused) {
  pthread_kill(main_thread, SIGUSR1);
  return unused;
}
int main(void) {
  main_thread = pthread_self();
  signal(SIGUSR1, on);
  sigset_t usr1, old;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &old);
  pthread_t thread;
  pthread_create(&thread, 0, send, 0);
#ifndef FIXED
  pthread_sigmask(SIG_SETMASK, &old, 0);
  while (!got) pause();
#else
  while (!got) sigsuspend(&old);
#endif
  pthread_join(thread, 0);
  return 0;
}
"""

# A server and a client in one program; a pipe that is too small for what is written at once; dup.
SOCKETS = r"""
#include <assert.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static int listener, ends[2];
static struct sockaddr_in address = {.sin_family = AF_INET};
static char large[100000];
static void *serve(void *unused) {
  int connection = accept(listener, 0, 0);
  char text[8];
  ssize_t got = 0;
  while (got < 5) {
    struct iovec part = {text + got, 5 - got};
    ssize_t more = readv(connection, &part, 1);
    assert(more > 0);
    got += more;
  }
  assert(memcmp(text, "hello", 5) == 0);
  assert(send(connection, "world", 5, 0) == 5);
  close(connection);
  return unused;
}
static void *drain(void *unused) {
  ssize_t sum = 0, got;
  while ((got = read(ends[0], large, sizeof large)) > 0) sum += got;
  assert(sum == sizeof large);
  return unused;
}
int main(void) {
  pthread_t server, reader;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  assert(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
  assert(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
  pthread_create(&server, 0, serve, 0);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  assert(connect(connection, (struct sockaddr *)&address, size) == 0);
  assert(write(connection, "hel", 3) == 3 && write(connection, "lo", 2) == 2);
  struct pollfd wanted = {connection, POLLIN, 0};
  assert(poll(&wanted, 1, -1) == 1);
  char text[8];
  assert(recv(connection, text, 5, MSG_WAITALL) == 5 && memcmp(text, "world", 5) == 0);
  pthread_join(server, 0);
  assert(pipe(ends) == 0);
  int copy = dup(ends[1]);
  close(ends[1]);
  pthread_create(&reader, 0, drain, 0);
  static char zeros[sizeof large];
  assert(write(copy, zeros, sizeof zeros) == sizeof zeros);
  close(copy);
  pthread_join(reader, 0);
  return 0;
}
"""

ROBUST = r"""
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
static pthread_mutex_t lock;
static void *die(void *unused) {
  assert(pthread_mutex_lock(&lock) == 0);
  return unused;
}
static void end_with_lock(void) {
  pthread_t thread;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 20);  /* a size, and no address */
  pthread_create(&thread, &small, die, 0);
  pthread_attr_destroy(&small);
  pthread_join(thread, 0);
}
int main(void) {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&lock, &robust);
  end_with_lock();
  assert(pthread_mutex_lock(&lock) == EOWNERDEAD);
  assert(pthread_mutex_consistent(&lock) == 0);
  assert(pthread_mutex_unlock(&lock) == 0);
  end_with_lock();
  assert(pthread_mutex_trylock(&lock) == EOWNERDEAD);
  assert(pthread_mutex_unlock(&lock) == 0);
  struct timespec soon = {0, 0};
  assert(pthread_mutex_lock(&lock) == ENOTRECOVERABLE);
  assert(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &soon) == ENOTRECOVERABLE);
  assert(pthread_mutex_trylock(&lock) == ENOTRECOVERABLE);
  return 0;
}
"""

# All sources of random numbers, and signals to threads by number. The title of the finding is a hash of the values.
RANDOM = r"""
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int got;
static void on(int signal) { got += signal; }
int main(void) {
  uint64_t sum = 0, value;
  FILE *stream = fopen("/dev/urandom", "rb");
  assert(fread(&value, sizeof value, 1, stream) == 1);
  sum += value;
  fclose(stream);
  int device = open("/dev/random", O_RDONLY);
  assert(read(device, &value, sizeof value) == sizeof value);
  sum += value;
  close(device);
  assert(getentropy(&value, sizeof value) == 0);
  sum += value;
  arc4random_buf(&value, sizeof value);
  sum += value + arc4random_uniform(1000);
  signal(SIGUSR1, on);
  assert(raise(SIGUSR1) == 0 && got == SIGUSR1);
  assert(tgkill(getpid(), gettid(), SIGUSR1) == 0 && got == 2 * SIGUSR1);
  assert(syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0 && got == 3 * SIGUSR1);
  assert(tgkill(getpid(), gettid() + 7, SIGUSR1) == -1);
  char text[64];
  snprintf(text, sizeof text, "sum %016lx", sum);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""

# C11 threads, and the waiting calls with a clock argument. The event that they wait for never comes, or came before.
CLOCKS = r"""
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
static mtx_t mutex;
static cnd_t condition;
static tss_t key;
static once_flag flag = ONCE_FLAG_INIT;
static int ready, inits, destroyed;
static atomic_uint word;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
static void init(void) { ++inits; }
static void destroy(void *value) { destroyed += *(int *)value; }
static int c11(void *argument) {
  static int one = 1;
  tss_set(key, &one);
  call_once(&flag, init);
  mtx_lock(&mutex);
  ready = 1;
  cnd_signal(&condition);
  mtx_unlock(&mutex);
  thrd_sleep(&(struct timespec){1, 0}, 0);
  return *(int *)argument;
}
static void *wake_futex(void *unused) {
  atomic_store(&word, 1);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
  return unused;
}
static void *try_all(void *unused) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 1;
  assert(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
  assert(pthread_rwlock_clockrdlock(&shared, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
  assert(pthread_rwlock_clockwrlock(&shared, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
  sem_t none;
  sem_init(&none, 0, 0);
  assert(sem_clockwait(&none, CLOCK_MONOTONIC, &until) == -1 && errno == ETIMEDOUT);
  pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&own);
  assert(pthread_cond_clockwait(&never, &own, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
  pthread_mutex_unlock(&own);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  assert(now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
  return unused;
}
int main(void) {
  mtx_init(&mutex, mtx_timed | mtx_recursive);
  cnd_init(&condition);
  tss_create(&key, destroy);
  int seven = 7, result = 0;
  thrd_t thread;
  assert(thrd_create(&thread, c11, &seven) == thrd_success);
  mtx_lock(&mutex);
  mtx_lock(&mutex);
  mtx_unlock(&mutex);
  while (!ready) cnd_wait(&condition, &mutex);
  mtx_unlock(&mutex);
  call_once(&flag, init);
  assert(thrd_join(thread, &result) == thrd_success && result == 7 && inits == 1 && destroyed == 1);

  pthread_t other;
  pthread_mutex_lock(&held);
  pthread_rwlock_wrlock(&shared);
  pthread_create(&other, 0, try_all, 0);
  struct timespec past = {0, 0};
  const int joined = pthread_clockjoin_np(other, 0, CLOCK_MONOTONIC, &past);
  assert(joined == 0 || joined == ETIMEDOUT);
  if (joined != 0) pthread_join(other, 0);

  pthread_create(&other, 0, wake_futex, 0);
  while (atomic_load(&word) == 0) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
  pthread_join(other, 0);

  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct itimerspec once = {{0, 0}, {now.tv_sec + 60, 0}}, rest;
  int timer = timerfd_create(CLOCK_REALTIME, 0);
  assert(timerfd_settime(timer, TFD_TIMER_ABSTIME, &once, 0) == 0);
  assert(timerfd_gettime(timer, &rest) == 0 && rest.it_value.tv_sec <= 60);
  uint64_t fired;
  assert(read(timer, &fired, sizeof fired) == sizeof fired && fired == 1);
  return 0;
}
"""

# There is one signal and one waiter, so only a spurious wake-up makes the difference between if and while.
BY_ITSELF = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int done;
static void *work(void *unused) {
  pthread_mutex_lock(&lock);
  done = 1;
  SIGNAL(pthread_cond_signal(&ready);)
  pthread_mutex_unlock(&lock);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_mutex_lock(&lock);
  LOOP (!done) pthread_cond_wait(&ready, &lock);
  assert(done);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, 0);
  return 0;
}
"""

# It is signalled once, so the loop runs twice only if the thread wakes spuriously before that.
TWICE = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int done;
static void *work(void *unused) {
  int times = 0;
  pthread_mutex_lock(&lock);
  for (; !done; ++times) pthread_cond_wait(&ready, &lock);
  pthread_mutex_unlock(&lock);
  assert(times < 2);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_mutex_lock(&lock);
  done = 1;
  pthread_mutex_unlock(&lock);
  pthread_cond_signal(&ready);
  pthread_join(thread, 0);
  return 0;
}
"""


class Waits(ProgramTest):
    def search(self, text, *options, flags=()):
        found = self.run_json(self.build(text, flags=flags), "--out", "", *options)
        self.assertEqual([words for words in found["trouble"] if "never had a second thread" not in words], [])
        return [finding["title"] for finding in found["findings"]]

    def test_handlers_end_calls(self):
        self.assertEqual(self.search(INTERRUPTED, "--strategy", "random", "--schedules", 40, "--run-twice"), [])

    def test_a_signal_before_pause_is_lost(self):
        titles = self.search(PAUSE, "--schedules", 500)
        self.assertEqual(len(titles), 1)
        self.assertIn("deadlock", titles[0])
        self.assertEqual(self.search(PAUSE, "--schedules", 100, flags=["-DFIXED"]), [])

    def test_sockets_inside_the_program(self):
        self.assertEqual(self.search(SOCKETS, "--strategy", "random", "--schedules", 40, "--run-twice"), [])

    def test_robust_mutexes(self):
        self.assertEqual(self.search(ROBUST, "--schedules", 20), [])

    def test_clocks_and_c11(self):
        for timeouts in ("any", "idle"):
            options = ("--strategy", "random", "--schedules", 40, "--timeouts", timeouts, "--run-twice")
            self.assertEqual(self.search(CLOCKS, *options), [], timeouts)

    def test_wakes_by_itself_if_asked(self):
        signals, forgets = "-DSIGNAL(x)=x", "-DSIGNAL(x)="
        once = ("--spurious", 1)
        self.assertEqual(self.search(BY_ITSELF, flags=["-DLOOP=if", signals]), [])
        self.assertEqual(self.search(BY_ITSELF, *once, flags=["-DLOOP=while", signals]), [])
        self.assertRegex(self.search(BY_ITSELF, *once, flags=["-DLOOP=if", signals])[0], "^assertion failed .*done")
        self.assertRegex(self.search(BY_ITSELF, *once, flags=["-DLOOP=while", forgets])[0], "deadlock|lost wakeup")
        # Even if no other thread waits for anything meanwhile.
        for strategy in ("dfs:limit=2", "random"):
            titles = self.search(TWICE, *once, "--strategy", strategy, "--schedules", 200)
            self.assertRegex(titles[0], "^assertion failed .*times < 2")
            self.assertEqual(self.search(TWICE, "--strategy", strategy, "--schedules", 200), [])
        # The capsule keeps the setting.
        program = self.build(BY_ITSELF, flags=["-DLOOP=if", signals])
        self.slalom("run", *once, "--out", "kept", "--", program, codes=(1,))
        capsule = next((self.folder / "kept").rglob("*.slalom"))
        self.assertIn("a spurious wake-up", self.slalom("replay", "--trace", capsule, codes=(1,)).stdout)

    def test_random_numbers_are_the_same(self):
        first, second = (self.search(RANDOM, "--schedules", 2, "--no-shrink") for _ in range(2))
        self.assertIn("sum ", first[0])
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
