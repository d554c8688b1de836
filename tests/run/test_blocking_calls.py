"""Calls that wait for another thread: that thread runs, whatever the call is. A call that slalom does not control ends the
execution at once, and the error names it."""

import unittest

from support import ProgramTest

PROGRAM = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2], queue;
static char big[1 << 18];
static void put(void) { assert(write(ends[1], "x", 1) == 1); }
static void drain(void) {  // byte by byte what main() wrote, which is counted up
  static char part[5000];
  for (size_t n = 0; n < sizeof big;) {
    ssize_t got = read(ends[0], part, sizeof part);
    assert(got > 0);
    for (ssize_t i = 0; i < got; ++i, ++n) assert(part[i] == (char)(n % 251));
  }
}
static void *thread_function(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  @THREAD@;
  return unused;
}
int main(int argc, char **argv) {
  char bytes[8];
  size_t size = (size_t)argc;
  struct iovec pieces[2] = {{big, 1000}, {big + 1000, sizeof big - 1000}};
  struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
  (void)argv, (void)bytes, (void)size, (void)message, (void)put, (void)drain;
  for (size_t i = 0; i < sizeof big; ++i) big[i] = (char)(i % 251);
  @BEFORE@;
  pthread_t thread;
  pthread_create(&thread, 0, thread_function, 0);
  @MAIN@;
  pthread_join(thread, 0);
  return 0;
}
"""

PIPE = "assert(pipe(ends) == 0)"
STREAM = "assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0)"
MESSAGES = "assert(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0)"
ALL = "== (ssize_t)sizeof big"
SIGNALS = "sigset_t s; sigemptyset(&s); sigaddset(&s, SIGUSR1); pthread_sigmask(SIG_BLOCK, &s, 0); int f = signalfd(-1, &s, 0)"

# The set-up before the threads, the code of the thread, and the code of main() meanwhile.
CONTROLLED = {
    "send": (STREAM, "drain()", f"assert(send(ends[1], big, sizeof big, 0) {ALL})"),
    "sendmsg": (STREAM, "drain()", f"assert(sendmsg(ends[1], &message, 0) {ALL})"),
    "writev to a socket": (STREAM, "drain()", f"assert(writev(ends[1], pieces, 2) {ALL})"),
    "writev to a pipe": (PIPE, "drain()", f"assert(writev(ends[1], pieces, 2) {ALL})"),
    "recv of all": (STREAM, "put(); put()", "assert(recv(ends[0], bytes, 2, MSG_WAITALL) == 2)"),
    "recvmmsg": (MESSAGES, "put()", "struct mmsghdr m = {.msg_hdr = {.msg_iov = pieces, .msg_iovlen = 1}};"
                 "assert(recvmmsg(ends[0], &m, 1, 0, 0) == 1 && m.msg_len == 1)"),
    "fgets": (PIPE, 'FILE *f = fdopen(ends[1], "w"); assert(fileno(f) == ends[1]); fprintf(f, "hello\\n"); fclose(f)',
              'FILE *f = fdopen(ends[0], "r"); assert(fgets(bytes, 8, f) && strcmp(bytes, "hello\\n") == 0); '
              'assert(fgets(bytes, 8, f) == 0 && feof(f)); fclose(f); assert(fdopen(ends[0], "r") == 0 && errno == EBADF)'),
    "dup3": (PIPE, "put()", "assert(dup3(ends[0], 20, O_CLOEXEC) == 20); assert(read(20, bytes, 1) == 1)"),
    "F_DUPFD": (PIPE, "put()", "int d = fcntl(ends[0], F_DUPFD_CLOEXEC, 10); assert(read(d, bytes, 1) == 1)"),
    "signalfd": (SIGNALS, "kill(getpid(), SIGUSR1)",
                 "struct signalfd_siginfo i; assert(read(f, &i, sizeof i) == sizeof i && i.ssi_signo == SIGUSR1)"),
    "syscall": (PIPE, 'assert(syscall(SYS_write, ends[1], "x", 1) == 1)', "assert(syscall(SYS_read, ends[0], bytes, 1) == 1)"),
    "__read_chk": (PIPE, "put()", "assert(read(ends[0], bytes, size) == 1)"),
    "__poll_chk": (PIPE, "put()", "struct pollfd p = {ends[0], POLLIN, 0}; assert(poll(&p, size, -1) == 1)"),
    "connect": ("struct sockaddr_un a = {AF_UNIX, \"\"}; queue = socket(AF_UNIX, SOCK_STREAM, 0);"
                "assert(bind(queue, (void *)&a, sizeof a.sun_family) == 0); socklen_t l = sizeof a;"
                "getsockname(queue, (void *)&a, &l); listen(queue, 0)",
                "for (int i = 0; i < 3; ++i) assert(accept(queue, 0, 0) >= 0)",
                "for (int i = 0; i < 3; ++i) assert(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, l) == 0)"),
}

UNCONTROLLED = {
    "for a lock inside a library": ("", "flockfile(stderr); pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); funlockfile(stderr)",
                                    "pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); fputwc(L'x', stderr)"),
}


class BlockingCalls(ProgramTest):
    def build_case(self, parts, *flags):
        before, thread, body = parts
        text = PROGRAM
        for word, code in (("@BEFORE@", before), ("@THREAD@", thread), ("@MAIN@", body)):
            text = text.replace(word, code)
        return self.build(text, flags=flags)

    def test_other_threads_run(self):
        for name, parts in CONTROLLED.items():
            with self.subTest(name):
                fortified = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"] if "chk" in name else []
                result = self.run_json(self.build_case(parts, *fortified), "--schedules", 20, "--out", "")
                self.assertEqual(result["findings"], [])
                self.assertGreaterEqual(result["executions"], 3)
                self.assertEqual(result["uncontrolled"], [])

    def test_what_is_not_controlled_is_named(self):
        for name, parts in UNCONTROLLED.items():
            with self.subTest(name):
                program = self.build_case(parts)
                done = self.slalom("run", "--schedules", 20, "--strategy", "random", "--patience", 60,
                                   "--out", "", "--", program, codes=(0, 2), limit=50)
                self.assertIn(f"waits {name}, which" if "(" in name else f"waits {name}", " ".join((done.stdout + done.stderr).split()))


if __name__ == "__main__":
    unittest.main()
