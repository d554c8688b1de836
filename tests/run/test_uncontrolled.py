"""Things that slalom does not control are listed with all results: in the report, in JSON and in JUnit's system-out."""

import unittest
import xml.etree.ElementTree as xml

from support import ProgramTest, line_of

# Does one thing that slalom does not control, chosen by number.
UNCONTROLLED = r"""
#include <dlfcn.h>
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
  if (WHICH == 6 && dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) == 0) return 1;
  if (WHICH != 3) pthread_join(thread, 0);
  return 0;
}
"""
NAMES = ("system calls that slalom does not model", "timers of its processor time", "forks",
         "neither joined nor detached", "io_submit, io_uring", "io_submit, io_uring", "namespace of their own (dlmopen)")

# main() waits for a thread that was started before it.
BEFORE_MAIN = r"""
#include <pthread.h>
#include <unistd.h>
static volatile int waits;
static int done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void *helper(void *unused) {
  while (!waits) usleep(1000);
  pthread_mutex_lock(&lock);
  done = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return unused;
}
__attribute__((constructor)) static void begin(void) {
  pthread_t thread;
  if (EARLY) pthread_create(&thread, 0, helper, 0);
}
int main(void) {
  waits = 1;
  pthread_mutex_lock(&lock);
  while (!done) pthread_cond_wait(&changed, &lock);
}
"""


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

    def test_threads_before_main(self):
        for early in (1, 0):
            result = self.run_json(self.build(BEFORE_MAIN, flags=[f"-DEARLY={early}"]), "--schedules", 5, "--out", "")
            [finding] = result["findings"]
            self.assertEqual(finding["kind"], "deadlock")
            doubt = f"This may be none: the program started a thread before main() (prog.c:{line_of(BEFORE_MAIN, 'helper(')} (helper))"
            self.assertEqual(doubt in finding["detail"], bool(early), finding["detail"])
            self.assertEqual(any("started before main()" in words for words in result["uncontrolled"]), bool(early))


if __name__ == "__main__":
    unittest.main()
