"""Process ids and times are the same in every search, even if a program asks the kernel directly."""

import unittest

from support import ProgramTest

# "Fails" with all of these values in the finding's title.
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


# The same for processes that it starts: each number is compared with another one that the program got.
PIDS = r"""
#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile pid_t died;
static void on_child(int s, siginfo_t *info, void *context) { (void)s, (void)context; died = info->si_pid; }
int main(void) {
  int up[2]; pipe(up);
  pid_t told, children[3];
  for (int i = 0; i < 2; ++i) {
    if ((children[i] = fork()) == 0) {  // who it is; then its own child's view, whose numbers are real
      pid_t own = getpid();
      if (own != gettid() || own != syscall(SYS_getpid) || getpgid(0) != getpgid(own)) _exit(1);
      pid_t grandchild = fork();
      if (grandchild == 0) _exit(getpid() == own || getppid() != own);
      int status; if (waitpid(grandchild, &status, 0) != grandchild || status != 0) _exit(2);
      if (i == 1 && setsid() != own) _exit(3);
      write(up[1], &own, sizeof own);
      pause();
    }
    assert(read(up[0], &told, sizeof told) == sizeof told && told == children[i]);
  }
  assert(children[0] != children[1] && getsid(children[1]) == children[1] && getpgid(children[0]) == getpid());
  int descriptor = syscall(SYS_pidfd_open, children[0], 0); assert(descriptor >= 0);
  assert(setpgid(children[0], children[0]) == 0 && getpgid(children[0]) == children[0]);
  assert(kill(-children[0], SIGTERM) == 0);
  struct pollfd dead = {descriptor, POLLIN, 0}; assert(poll(&dead, 1, -1) == 1);
  siginfo_t info; assert(waitid(P_PID, children[0], &info, WEXITED) == 0 && info.si_pid == children[0] && info.si_status == SIGTERM);
  struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO}; sigaction(SIGCHLD, &action, 0);
  assert(kill(children[1], SIGKILL) == 0);
  int status; assert(waitpid(children[1], &status, 0) == children[1] && WTERMSIG(status) == SIGKILL);
  while (died != children[1]) usleep(10);
  char *arguments[] = {"true", 0};
  assert(posix_spawnp(&children[2], "true", 0, 0, arguments, environ) == 0);
  assert(wait(&status) == children[2] && status == 0);
  char text[100]; snprintf(text, sizeof text, "all told: %d %d %d", children[0], children[1], children[2]);
  __assert_fail(text, __FILE__, __LINE__, __func__);
}
"""


class Identity(ProgramTest):
    def check(self, text, name, said=""):
        program = self.build(text, name=name)
        titles = set()
        for search in ("first", "second"):
            result = self.run_json(program, "--schedules", 1, "--workers", 1, "--out", f"{name}-{search}")
            [finding] = result["findings"]
            self.assertEqual(finding["replayed"], "10/10")
            self.assertIn(said, finding["title"])
            titles.add(finding["title"])
            self.slalom("replay", finding["capsule"], codes=(1,))
        self.assertEqual(len(titles), 1, titles)

    def test_the_process_is_the_same_again(self):
        self.check(ASKS, "asks")

    def test_processes_that_it_starts_are_the_same_again(self):
        self.check(PIDS, "pids", said="all told")


if __name__ == "__main__":
    unittest.main()
