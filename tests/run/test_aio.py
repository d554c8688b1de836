"""Asynchronous input and output: requests are part of the search, and end as those of libc do."""

import subprocess
import unittest

from support import ProgramTest

# Makes every call once. The results do not depend on the schedule, and the real functions must agree.
ALL = r"""
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static volatile int signals, values, calls;
static pthread_t caller;
static void on(int signal, siginfo_t *info, void *unused) {
  (void)signal, (void)unused;
  assert(info->si_code == SI_ASYNCIO);
  values += info->si_value.sival_int;
  ++signals;
}
static void call(union sigval value) {
  assert(!pthread_equal(pthread_self(), caller));
  __atomic_fetch_add(&calls, value.sival_int, __ATOMIC_SEQ_CST);
}
static ssize_t result_of(struct aiocb *request) {
  const struct aiocb *const list[] = {0, request};
  while (aio_error(request) == EINPROGRESS) assert(aio_suspend(list, 2, 0) == 0 || errno == EINTR);
  return aio_return(request);
}
static void *write_byte(void *end) {
  assert(write(*(int *)end, "p", 1) == 1);
  return 0;
}
int main(void) {
  struct sigaction action = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigaction(SIGRTMIN, &action, 0);
  caller = pthread_self();
  const int file = memfd_create("file", 0);
  char out[] = "0123456789", in[16] = {0}, a[4] = {0}, b[4] = {0};

  /* One after the other, also with a function and a signal at the end. */
  struct aiocb put = {.aio_fildes = file, .aio_buf = out, .aio_nbytes = 10, .aio_sigevent.sigev_notify = SIGEV_NONE};
  assert(aio_write(&put) == 0 && result_of(&put) == 10 && aio_error(&put) == 0);
  struct aiocb get = {.aio_fildes = file, .aio_buf = in, .aio_nbytes = 16, .aio_offset = 3};
  get.aio_sigevent.sigev_notify = SIGEV_THREAD;
  get.aio_sigevent.sigev_notify_function = call;
  get.aio_sigevent.sigev_value.sival_int = 5;
  assert(aio_read(&get) == 0 && result_of(&get) == 7 && strcmp(in, "3456789") == 0);
  while (calls != 5) usleep(10);
  put.aio_sigevent.sigev_notify = SIGEV_SIGNAL;
  put.aio_sigevent.sigev_signo = SIGRTMIN;
  put.aio_sigevent.sigev_value.sival_int = 7;
  assert(aio_fsync(O_SYNC, &put) == 0 && result_of(&put) == 0);
  while (signals != 1) usleep(10);
  assert(values == 7);

  /* What goes wrong is found in the request. */
  struct aiocb bad = {.aio_fildes = 999, .aio_buf = in, .aio_nbytes = 1, .aio_sigevent.sigev_notify = SIGEV_NONE};
  assert(aio_read(&bad) == 0 && result_of(&bad) == -1 && aio_error(&bad) == EBADF);
  assert(aio_fsync(O_SYNC, &bad) == -1 && errno == EBADF && aio_fsync(12345, &put) == -1 && errno == EINVAL);
  assert(aio_cancel(999, 0) == -1 && errno == EBADF);
  bad.aio_reqprio = -1;
  assert(aio_read(&bad) == -1 && errno == EINVAL);

  /* Lists: requests for one descriptor keep their order. */
  struct aiocb first = {.aio_fildes = file, .aio_lio_opcode = LIO_WRITE, .aio_buf = "ab", .aio_nbytes = 2};
  struct aiocb second = {.aio_fildes = file, .aio_lio_opcode = LIO_READ, .aio_buf = a, .aio_nbytes = 3};
  struct aiocb third = {.aio_fildes = file, .aio_lio_opcode = LIO_READ, .aio_buf = b, .aio_nbytes = 2, .aio_offset = 1};
  struct aiocb nothing = {.aio_lio_opcode = LIO_NOP};
  first.aio_sigevent.sigev_notify = second.aio_sigevent.sigev_notify = third.aio_sigevent.sigev_notify = SIGEV_NONE;
  struct aiocb *list[] = {&first, 0, &second, &nothing, &third};
  assert(lio_listio(LIO_WAIT, list, 5, 0) == 0 && strcmp(a, "ab2") == 0 && strcmp(b, "b2") == 0);
  assert(aio_return(&first) == 2 && aio_return(&second) == 3 && aio_return(&third) == 2);
  struct sigevent all = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 30};
  assert(lio_listio(LIO_NOWAIT, list, 5, &all) == 0);
  while (signals != 2) usleep(10);
  assert(values == 37 && aio_error(&first) == 0 && aio_error(&second) == 0 && aio_error(&third) == 0);
  all.sigev_notify = SIGEV_THREAD;
  all.sigev_notify_function = call;
  assert(lio_listio(LIO_NOWAIT, list, 5, &all) == 0);
  while (calls != 35) usleep(10);
  second.aio_fildes = 999;
  assert(lio_listio(LIO_WAIT, list, 5, 0) == -1 && errno == EIO && aio_error(&second) == EBADF);
  assert(lio_listio(77, list, 5, 0) == -1 && errno == EINVAL);

  /* A pipe: the data come from another thread; a request behind that can be cancelled. */
  int ends[2];
  assert(pipe(ends) == 0);
  struct aiocb wait = {.aio_fildes = ends[0], .aio_buf = in, .aio_nbytes = 1, .aio_sigevent.sigev_notify = SIGEV_NONE};
  struct aiocb behind = wait;
  assert(aio_read(&wait) == 0 && aio_read(&behind) == 0);
  const struct aiocb *const one[] = {&wait};
  const struct timespec soon = {0, 1000000};
  assert(aio_suspend(one, 1, &soon) == -1 && errno == EAGAIN && aio_error(&wait) == EINPROGRESS);
  assert(aio_cancel(ends[0], &behind) == AIO_CANCELED && aio_error(&behind) == ECANCELED);
  assert(aio_return(&behind) == -1 && aio_cancel(ends[0], &behind) == AIO_ALLDONE);
  pthread_t thread;
  pthread_create(&thread, 0, write_byte, &ends[1]);
  assert(result_of(&wait) == 1 && in[0] == 'p');
  pthread_join(thread, 0);
  assert(aio_cancel(ends[0], 0) == AIO_ALLDONE && aio_cancel(file, &first) == AIO_ALLDONE);
  assert(aio_cancel(file, &wait) == -1 && errno == EINVAL);
  return 0;
}
"""

# The schedule decides which of three things happens to a cancelled request. WHICH must be possible.
CANCELLED = r"""
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  char byte = 0;
  const int file = memfd_create("file", 0);
  assert(write(file, "x", 1) == 1);
  struct aiocb get = {.aio_fildes = file, .aio_buf = &byte, .aio_nbytes = 1, .aio_sigevent.sigev_notify = SIGEV_NONE};
  assert(aio_read(&get) == 0);
  const int result = aio_cancel(file, &get);
  const struct aiocb *const list[] = {&get};
  while (aio_error(&get) == EINPROGRESS) aio_suspend(list, 1, 0);
  const int cancelled = aio_error(&get) == ECANCELED;
  if (cancelled != (result == AIO_CANCELED) || byte != (cancelled ? 0 : 'x')) __builtin_trap();
  assert(result != WHICH);
  return 0;
}
"""

# A wait for a request that never ends is ended by its limit or by a handler. Both must be possible.
INTERRUPTED = r"""
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void on(int signal) { (void)signal; }
static void *send(void *thread) {
  pthread_kill(*(pthread_t *)thread, SIGUSR1);
  return 0;
}
int main(void) {
  int ends[2];
  char byte;
  assert(pipe(ends) == 0);
  signal(SIGUSR1, on);
  struct aiocb get = {.aio_fildes = ends[0], .aio_buf = &byte, .aio_nbytes = 1, .aio_sigevent.sigev_notify = SIGEV_NONE};
  const struct aiocb *const list[] = {&get};
  const struct timespec second = {1, 0};
  pthread_t thread, self = pthread_self();
  assert(aio_read(&get) == 0);
  pthread_create(&thread, 0, send, &self);
  const int result = aio_suspend(list, 1, &second);
  if (result != -1 || (errno != EINTR && errno != EAGAIN)) __builtin_trap();
  assert(errno != WHICH);
  pthread_join(thread, 0);
  _exit(0);
}
"""

# Uses of requests that POSIX forbids.
MISUSED = r"""
#include <aio.h>
#include <unistd.h>
int main(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) return 1;
  struct aiocb get = {.aio_fildes = ends[0], .aio_buf = &byte, .aio_nbytes = 1, .aio_sigevent.sigev_notify = SIGEV_NONE};
  aio_read(&get);
  WHAT(&get);
  return 0;
}
"""

# The buffer is read while the request may still write it.
RACE = r"""
#include <aio.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
static char buffer[4];
static volatile int sink;
int main(void) {
  const int file = memfd_create("file", 0);
  if (write(file, "abcd", 4) != 4) return 1;
  static struct aiocb get = {.aio_buf = buffer, .aio_nbytes = 4, .aio_sigevent.sigev_notify = SIGEV_NONE};
  get.aio_fildes = file;
  aio_read(&get);
#ifdef FIXED
  const struct aiocb *const list[] = {&get};
  while (aio_error(&get) == EINPROGRESS) aio_suspend(list, 1, 0);
#endif
  sink = buffer[1];
  return 0;
}
"""


class Aio(ProgramTest):
    def search(self, text, *options, flags=()):
        found = self.run_json(self.build(text, flags=flags), "--out", "", "--schedules", 150, *options)
        self.assertEqual(found["trouble"], [])
        return [finding["title"] for finding in found["findings"]]

    def test_libc_agrees(self):
        subprocess.run([self.build(ALL)], check=True, timeout=60)

    def test_every_call(self):
        for timeouts in ("any", "idle"):
            self.assertEqual(self.search(ALL, "--strategy", "random", "--timeouts", timeouts, "--run-twice"), [], timeouts)

    def test_every_call_with_its_other_name(self):
        self.assertEqual(self.search(ALL, "--strategy", "random", flags=["-D_FILE_OFFSET_BITS=64"]), [])

    def test_every_end_of_a_cancelled_request(self):
        for which in ("AIO_CANCELED", "AIO_NOTCANCELED", "AIO_ALLDONE"):
            titles = self.search(CANCELLED, flags=[f"-DWHICH={which}"])
            self.assertEqual(len(titles), 1, which)
            self.assertIn("result != ", titles[0])

    def test_how_a_wait_ends(self):
        for which in ("EINTR", "EAGAIN"):
            titles = self.search(INTERRUPTED, flags=[f"-DWHICH={which}"])
            self.assertEqual(len(titles), 1, which)
            self.assertIn("errno != ", titles[0])

    def test_requests_have_names(self):
        program = self.build(CANCELLED, flags=["-DWHICH=AIO_ALLDONE"])
        done = self.slalom("run", "--schedules", 150, "--out", "", "--", program, codes=(1,))
        self.assertIn("aio_read#1", done.stdout)
        self.assertNotIn("warning: ", done.stdout)

    def test_misuse(self):
        self.assertIn("aio_return of a request that is still in progress", self.search(MISUSED, flags=["-DWHAT=aio_return"])[0])
        self.assertIn("control block of one that is still in progress", self.search(MISUSED, flags=["-DWHAT=aio_read"])[0])

    def test_race_with_a_request(self):
        flags = ["-fsanitize=thread"]
        titles = self.search(RACE, flags=flags)
        self.assertEqual(len(titles), 1)
        self.assertIn("data race on buffer[]:", titles[0])
        self.assertEqual(self.search(RACE, flags=[*flags, "-DFIXED"]), [])


if __name__ == "__main__":
    unittest.main()
