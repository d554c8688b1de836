"""What names a process and counts its time is the same in every search, also where a program asks the kernel itself."""

import unittest

from support import ProgramTest

# "Fails" with all of it, and says so in the finding's title.
ASKS = r"""
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  struct tms used;
  struct rusage usage;
  struct timespec now;
  uint64_t random[2];
  for (volatile long i = 0; i < 3000000; ++i) {}
  long ticks = times(&used);
  getrusage(RUSAGE_SELF, &usage);
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  syscall(SYS_getrandom, &random[0], sizeof random[0], 0);
  pread(open("/dev/urandom", O_RDONLY), &random[1], sizeof random[1], 0);
  assert(getpgrp() == getpid() && getpgid(0) == getpid() && syscall(SYS_getpgid, 0) == getpid() && getsid(0) == getppid());
  assert(syscall(SYS_getppid) == getppid() && syscall(SYS_gettid) == gettid() && usage.ru_minflt == 0);
  char text[400];
  snprintf(text, sizeof text, "%ld %ld %ld %ld.%ld %lx %lx", ticks, used.tms_utime, usage.ru_utime.tv_usec, now.tv_sec, now.tv_nsec,
           random[0], random[1]);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""


class Identity(ProgramTest):
    def test_is_the_same_again(self):
        program = self.build(ASKS)
        titles = set()
        for search in ("first", "second"):
            result = self.run_json(program, "--schedules", 1, "--workers", 1, "--out", search)
            [finding] = result["findings"]
            self.assertEqual(finding["replayed"], "10/10")
            titles.add(finding["title"])
        self.assertEqual(len(titles), 1, titles)
        for capsule in self.folder.glob("*/*/capsule.slalom"):
            self.slalom("replay", capsule, codes=(1,))


if __name__ == "__main__":
    unittest.main()
