"""What slalom does not control is named wherever results are: in the report, in JSON and in JUnit's system-out."""

import unittest
import xml.etree.ElementTree as xml

from support import ProgramTest

# One thing that is not controlled, by its number.
UNCONTROLLED = r"""
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static int word, other;
static void *nothing(void *unused) { return unused; }
int main(void) {
  struct itimerval later = {{0, 0}, {1000, 0}};
  pthread_t thread;
  pthread_create(&thread, 0, nothing, 0);
  if (WHICH == 0) syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PI, 1, 1, &other, 0);
  if (WHICH == 1) setitimer(ITIMER_PROF, &later, 0);
  if (WHICH == 2 && fork() == 0) _exit(0);
  if (WHICH == 2) wait(0);
  if (WHICH == 4) syscall(SYS_io_setup, 1, 0);
  if (WHICH == 5) syscall(SYS_io_uring_setup, 1, 0);
  if (WHICH != 3) pthread_join(thread, 0);
  return 0;
}
"""
NAMES = ("system calls that slalom does not model", "timers of its processor time", "forks",
         "neither joined nor detached", "io_submit, io_uring", "io_submit, io_uring")


class Uncontrolled(ProgramTest):
    def test_is_named(self):
        for which, name in enumerate(NAMES):
            program = self.build(UNCONTROLLED, flags=[f"-DWHICH={which}"])
            options = ("--schedules", 5, "--out", "")
            [words] = self.run_json(program, *options)["uncontrolled"]
            self.assertIn(name, words)
            done = self.slalom("run", *options, "--junit", "results.xml", "--", program, codes=(0,))
            self.assertEqual(done.stderr, "")
            self.assertIn(f"warning: {words}\n", " ".join(done.stdout.split()) + "\n")
            suite = xml.parse(self.folder / "results.xml").getroot().find("testsuite")
            self.assertIn(f"warning: {words}\n", suite.findtext("system-out"))
        controlled = self.run_json(self.build(UNCONTROLLED, flags=["-DWHICH=-1"]), *options)
        self.assertEqual(controlled["uncontrolled"], [])


if __name__ == "__main__":
    unittest.main()
