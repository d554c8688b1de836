"""Accesses that functions of libc and the kernel make for a program built with -fsanitize=thread."""

import json
import unittest

from support import ProgramTest, line_of

# main's access to the data: a store races with every access, a load only with writes.
READS = [
    "strchr(data, 'q')", "strrchr(data, 'q')", "strstr(data, other + 1)", "memchr(data, 'q', 8)", "strndup(data, 3)",
    "strcasecmp(data, other)", "strncasecmp(data, other, 3)", "strspn(data, other)", "strcspn(other, data)",
    "stpcpy(target, data)", "strncat(target, data, 3)", 'snprintf(target, 64, "%d %5.3s %s", 1, other, data)',
    'sprintf(target, "%*d %.2f %s", 3, 1, 2.0, data)', "write(ends[0], data, 8)", "send(ends[0], data, 8, 0)",
    "sendto(ends[0], data, 8, 0, 0, 0)", "writev(ends[0], &part, 1)", "sendmsg(ends[0], &message, 0)",
    "pwrite(file, data, 8, 0)", "write(file, data, 8)",
]
WRITES = [
    "read(ends[0], data, 8)", "recv(ends[0], data, 8, 0)", "recvfrom(ends[0], data, 8, 0, 0, 0)", "readv(ends[0], &part, 1)",
    "recvmsg(ends[0], &message, 0)", "pread(file, data, 8, 0)", "read(file, data, 8)", 'snprintf(data, 8, "%s", other)',
    "stpcpy(data, other)",
]
NO_FURTHER = [
    "memchr(data, 't', 64)", "strchr(data, 'e')", "read(ends[0], data, 8)", 'snprintf(target, 64, "%.3s", data)',
    "strncasecmp(data, other, 3)",
]
CALLS = READS + WRITES + NO_FURTHER

# Arguments: the thread's call; main's access; and whether main waits for the thread first.
PROGRAM = """#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static char data[64] = "text", other[64] = "text", target[128];
static char *buffer;
static int ends[2], file, which;
static volatile long sink;
static void *work(void *unused) {
  struct iovec part = {data, 8};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  switch (which) {
CALLS
    case -1: sink = write(ends[0], buffer, 8); break;
  }
  return unused;
}
int main(int count, char **words) {
  pthread_t thread;
  which = atoi(words[1]);
  buffer = calloc(1, 8);
  if (count != 4 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || write(ends[1], other, sizeof other) < 0) return 1;
  file = open("/dev/zero", O_RDWR);
  pthread_create(&thread, 0, work, 0);
  if (*words[3] == 'l') pthread_join(thread, 0);
  switch (*words[2]) {
    case 's': data[0] = 't'; break;
    case 'l': (void)*(volatile char *)data; break;
    case 'b': data[8] = 0; break;
    case 'f': free(buffer); break;
  }
  if (*words[3] != 'l') pthread_join(thread, 0);
  return 0;
}
""".replace("CALLS", "\n".join(f"    case {i}: sink = (long)({call}); break;" for i, call in enumerate(CALLS)))


class LibcAccesses(ProgramTest):
    def setUp(self):
        self.program = self.build(PROGRAM, flags=["-fsanitize=thread", "-fno-builtin"])

    def findings(self, call, touch, later=False):
        which = CALLS.index(call) if call else -1
        done = self.slalom("run", "--json", "--out", "", "--no-shrink", "--schedules", 8, "--strategy", "random", "--keep-going", "--",
                           self.program, which, touch, "later" if later else "now")
        return json.loads(done.stdout)["findings"]

    def check_race(self, call, touch):
        with self.subTest(call):
            found = self.findings(call, touch)
            self.assertEqual({finding["kind"] for finding in found}, {"data-race"})
            place = f"prog.c:{line_of(PROGRAM, f'case {CALLS.index(call)}:')} "
            self.assertTrue(any(place in finding["title"] for finding in found), found)
            self.assertEqual(self.findings(call, touch, later=True), [])

    def test_what_is_read(self):
        for call in READS:
            self.check_race(call, "store")
            with self.subTest(call):
                self.assertEqual(self.findings(call, "load"), [])

    def test_what_is_written(self):
        for call in WRITES:
            self.check_race(call, "load")

    def test_no_more_than_that(self):
        for call in NO_FURTHER:
            with self.subTest(call):
                self.assertEqual(self.findings(call, "behind"), [])

    def test_freed_buffers(self):
        self.assertIn("use-after-free", {finding["kind"] for finding in self.findings(None, "free")})


if __name__ == "__main__":
    unittest.main()
