"""The facts about files that programs see: the same in every execution with the same schedule, wherever the folder is."""

import unittest

from support import ProgramTest

# Both threads take a lock if LOOK returns an odd number, and lose an update. So the schedule contains these locks.
PARTS = """
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static unsigned hash(const char *text) {
  unsigned value = 0;
  for (; *text != 0; ++text) value = value * 31 + (unsigned char)*text;
  return value >> 3;
}
static struct stat fresh(const char *name) {
  struct stat info;
  close(open(name, O_CREAT | O_WRONLY, 0600));
  assert(stat(name, &info) == 0);
  return info;
}
static unsigned look(const char *name) {
  LOOK;
}
static void *part(void *name) {
  for (unsigned bits = look(name), i = 0; i < 8; ++i, bits >>= 1)
    if (bits & 1) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
  pthread_mutex_lock(&m);
  int now = done;
  pthread_mutex_unlock(&m);
  pthread_mutex_lock(&m);
  done = now + 1;
  pthread_mutex_unlock(&m);
  return 0;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, part, "a");
  pthread_create(&b, 0, part, "b");
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(done == 2);
}
"""
LOOKS = {
    "folder": "char path[4096]; assert(getcwd(path, sizeof path)); return hash(path)",
    "time": "return fresh(name).st_mtim.tv_nsec / 1000000 + fresh(name).st_mtime",
    "number": "return fresh(name).st_ino",
    "temporary": 'char path[] = "partXXXXXX"; close(mkstemp(path)); return hash(path)',
    "temporary_folder": 'char path[] = "partXXXXXX"; assert(mkdtemp(path)); return hash(path)',
}
PROC = """
#include <stdio.h>
int main(void) {
  FILE *file = fopen("/proc/self/PART", "r");
  int first = fgetc(file);
  fclose(file);
  return first < 0;
}
"""


class FilesTest(ProgramTest):
    def test_findings_replay_whatever_files_a_program_looks_at(self):
        for name, look in LOOKS.items():
            with self.subTest(name):
                program = self.build(PARTS, name="parts_" + name, flags=[f"-DLOOK={look}"])
                result = self.run_json(program, "--strategy", "random", "--schedules", 300, "--no-shrink", *self.fresh())
                [finding] = result["findings"]
                self.assertEqual(finding["replayed"], "10/10")
                self.assertIn("the same in 3 of 3", self.slalom("replay", finding["capsule"], "--times", 3).stdout)
                self.assertEqual(result["uncontrolled"], [])
                self.assertEqual(list((self.folder / "empty").iterdir()), [])

    def test_what_changes_in_proc_is_named(self):
        for part, words in (("status", 1), ("cmdline", 0)):
            text = PROC.replace("PART", part)
            program = self.build(text, name="proc_" + part)
            uncontrolled = self.run_json(program, "--schedules", 2)["uncontrolled"]
            self.assertEqual(len([one for one in uncontrolled if "/proc" in one]), words)


if __name__ == "__main__":
    unittest.main()
