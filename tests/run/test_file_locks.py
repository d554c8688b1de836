"""Locks that are not memory: file locks, stream locks and System V semaphores. If both threads take them in the same order, they
work as locks; if they take them crosswise, the deadlock names them."""

import re
import unittest

from support import ProgramTest

# Two locks, which both threads take in the same order or crosswise. The program counts in the data that they protect.
LOCKS = r"""
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>
@LOCK@
static int counter;
static void *work(void *argument) {
  int number = (int)(long)argument;
  open_locks(number);
  int first = CROSSWISE ? number : 0;
  take(number, first);
  take(number, 1 - first); /* the second */
  counter++;
  give(number, 1 - first);
  give(number, first);
  return 0;
}
int main(void) {
  pthread_t threads[2];
  begin();
  for (long i = 0; i < 2; ++i) pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  assert(counter == 2);
  return 0;
}
"""
OPENED = """
static int files[2][2];
static void begin(void) {}
static void open_locks(int n) {
  files[n][0] = open("first", O_RDWR | O_CREAT, 0600);
  files[n][1] = open("second", O_RDWR | O_CREAT, 0600);
}
"""
FLOCK = OPENED + """
static void take(int n, int i) { assert(flock(files[n][i], LOCK_EX) == 0); }
static void give(int n, int i) { assert(flock(files[n][i], LOCK_UN) == 0); }
"""
CLOSED = FLOCK.replace("flock(files[n][i], LOCK_UN)", "close(files[n][i])")
BY_NUMBER = FLOCK.replace("flock(", "syscall(SYS_flock, ")
OFD = OPENED + """
static int lock(int file, short type) {
  struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
  return fcntl(file, F_OFD_SETLKW, &range);
}
static void take(int n, int i) { assert(lock(files[n][i], F_WRLCK) == 0); }
static void give(int n, int i) { assert(lock(files[n][i], F_UNLCK) == 0); }
"""
STREAM = """
static FILE *streams[2];
static void begin(void) { streams[0] = tmpfile(); streams[1] = tmpfile(); }
static void open_locks(int n) { (void)n; }
static void take(int n, int i) { (void)n; flockfile(streams[i]); }
static void give(int n, int i) { (void)n; fprintf(streams[i], "x"); funlockfile(streams[i]); }
"""
SEMAPHORES = """
static int set;
static void operate(short number, short by) {
  struct sembuf operation = {(unsigned short)number, by, 0};
  assert(semop(set, &operation, 1) == 0);
}
static void begin(void) {
  assert((set = semget(IPC_PRIVATE, 2, 0600)) >= 0);
  operate(0, 1);
  operate(1, 1);
}
static void open_locks(int n) { (void)n; }
static void take(int n, int i) { (void)n; operate((short)i, -1); }
static void give(int n, int i) { (void)n; operate((short)i, 1); }
"""
LOCK_KINDS = {"flock": (FLOCK, "file lock#"), "closing": (CLOSED, "file lock#"), "syscall": (BY_NUMBER, "file lock#"),
              "open file descriptions": (OFD, "file lock#"), "streams": (STREAM, "mutex#"), "semop": (SEMAPHORES, "semaphores#")}


class FileLocks(ProgramTest):
    def test_locks(self):
        for name, (code, object_name) in LOCK_KINDS.items():
            with self.subTest(name):
                text = LOCKS.replace("@LOCK@", code)
                self.exhausts(self.build(text, flags=["-DCROSSWISE=0"]))
                finding = self.deadlocks(self.build(text, "crosswise_" + re.sub(r"\W", "_", name), flags=["-DCROSSWISE=1"]))
                self.assertIn(object_name, finding["detail"])
                self.assertIn("work", finding["detail"])
                if name != "semop":  # which has no holder
                    self.assertIn("held by another work", finding["title"])


if __name__ == "__main__":
    unittest.main()
