"""The part of a program before a second thread can exist runs once for all executions, and each execution has a copy of its
state."""

import unittest

from support import ProgramTest, two_threads

SANITIZED = ("-fsanitize=thread",)

# A lost update after some hundred thousand accesses by main alone.
LONG = r"""
#include <assert.h>
#include <pthread.h>
static unsigned table[40000];
static int counter;
static void *add(void *unused) { ++counter; return unused; }
int main(void) {
  for (unsigned i = 1; i < 40000; ++i) table[i] = table[i - 1] * 3 + table[(i * 7) % 40000];
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, add, 0);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  assert(counter == 2);
  return 0;
}
"""

# The threads continue to read where main has stopped. Output before and after them appears once in each execution.
READS = two_threads(
    r"""#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int file, counter, seen;
static char *block;""",
    r"""char digit = 0;
  if (read(file, &digit, 1) != 1) abort();
  __atomic_fetch_add(&seen, digit - '0', __ATOMIC_SEQ_CST);
  const int before = counter; ++block[0]; counter = before + 1;""",
    r"""assert(seen == 4 + 5);
  printf("after\n");
  return 0;""").replace("pthread_t a, b;", r"""pthread_t a, b;
  printf("before\n");
  fprintf(stderr, "an error\n");
  assert(fopen("missing", "r") == NULL);
  char text[4];
  file = open("digits", O_RDONLY);
  assert(read(file, text, 4) == 4 && memcmp(text, "0123", 4) == 0);
  block = calloc(1, 100);""")

# State that a fork would share: a pipe with data, a file that is written, a shared memory mapping.
SHARES = two_threads(
    r"""#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static int ends[2];
static _Atomic int *shared;""",
    r"""char byte = 0;
  if (read(ends[0], &byte, 1) != 1) abort();
  ++*shared;""",
    r"""struct stat info;
  assert(*shared == 2 && stat("written", &info) == 0 && info.st_size == 3);
  return 0;""").replace("pthread_t a, b;", r"""pthread_t a, b;
  const int file = open("written", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  assert(file >= 0 && write(file, "abc", 3) == 3 && close(file) == 0);
  assert(pipe(ends) == 0 && write(ends[1], "xy", 2) == 2);
  shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);""")

# Made without an interposed function.
HIDDEN = two_threads(
    r"""#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static _Atomic int *shared;
static long raw_mmap(void) {
  register long flags __asm__("r10") = MAP_SHARED | MAP_ANONYMOUS;
  register long file __asm__("r8") = -1;
  register long from __asm__("r9") = 0;
  long at = SYS_mmap;
  __asm__ volatile("syscall" : "+a"(at) : "D"(0L), "S"(4096L), "d"(3L), "r"(flags), "r"(file), "r"(from) : "rcx", "r11", "memory");
  return at;
}""",
    "++*shared;",
    "assert(*shared == 2); return 0;").replace("pthread_t a, b;", "pthread_t a, b;\n  shared = (_Atomic int *)raw_mmap();")

ALONE = "int main(void) { return 0; }"
ENDLESS = "volatile int cells[10];\nint main(void) { for (unsigned i = 0;; ++i) cells[i % 10] += 1; }"


class SetUp(ProgramTest):
    def test_a_bug_behind_a_long_set_up(self):
        result = self.run_json(self.build(LONG, "long", flags=SANITIZED))
        [failure] = [one for one in result["findings"] if one["severity"] == "failure"]
        self.assertLess(result["executions"], 100)
        self.assertEqual(failure["replayed"], "10/10")
        # Positions count from main(), wherever executions begin.
        replayed = self.slalom("replay", failure["capsule"], "--times", 2)
        self.assertIn("the same in 2 of 2", replayed.stdout)

    def test_set_up_is_not_made_again_to_shrink_a_finding(self):
        # A system call that slalom does not see, so that set-up stays shared.
        program = self.build(LONG.replace("int main(void) {", r"""
static long call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
int main(void) {
  long file = call(2, (long)"set-ups", 02002, 0);
  call(1, file, (long)"x", 1);
  call(3, file, 0, 0);"""), flags=SANITIZED)
        (self.folder / "set-ups").write_text("")
        result = self.run_json(program, "--workers", 1, "--out", "")
        [finding] = [one for one in result["findings"] if one["kind"] == "assertion"]
        self.assertEqual(finding["minimality"], "minimum")
        replays = int(finding["replayed"].split("/")[1])
        machines = 6  # that look, search and shrink, at most
        self.assertLessEqual(len((self.folder / "set-ups").read_text()), replays + machines)

    def test_each_execution_has_files_output_and_memory_as_set_up_left_them(self):
        (self.folder / "digits").write_text("0123456789")
        (self.folder / "expected").write_text("before\nafter\n")
        program = self.build(READS, "reads", flags=SANITIZED)
        options = ("--expect-output", "expected", "--schedules", 40, "--keep-going", "--fail-on", "race")
        shared = self.run_json(program, *options)
        apart = self.run_json(program, *options, "--from-main")
        self.assertEqual([one["title"] for one in shared["findings"]], [one["title"] for one in apart["findings"]])
        self.assertEqual((shared["classes"], shared["executions"]), (apart["classes"], apart["executions"]))
        for finding in shared["findings"]:
            self.assertEqual((finding["severity"], finding["replayed"]), ("race", "10/10"))

    def test_what_executions_would_share_is_made_in_each(self):
        program = self.build(SHARES, "shares")
        (self.folder / "empty").mkdir(exist_ok=True)
        for scratch in ((), ("--scratch", "empty")):
            result = self.run_json(program, "--strategy", "dfs", "--schedules", 60, "--workers", 1, *scratch)
            self.assertEqual((result["findings"], result["uncontrolled"]), ([], []), scratch)

    def test_what_is_shared_unseen_makes_executions_begin_at_main(self):
        result = self.run_json(self.build(HIDDEN, "hidden"), "--strategy", "dfs", "--schedules", 60)
        self.assertEqual(result["findings"], [])
        self.assertIn("every execution begins at main()", " ".join(result["trouble"]))

    def test_one_thread(self):
        done = self.slalom("run", "--", self.build(ALONE, "alone"), codes=(0,))
        self.assertIn("nothing to interleave", done.stdout + done.stderr)

    def test_set_up_that_does_not_end(self):
        program = self.build(ENDLESS, "endless", flags=SANITIZED)
        done = self.slalom("run", "--max-set-up", 200_000, "--", program, codes=(2,))
        self.assertIn("set-up does not end: after 200000 operations", " ".join((done.stdout + done.stderr).split()))


if __name__ == "__main__":
    unittest.main()
