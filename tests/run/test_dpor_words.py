"""Reduction on programs that sleep on words of memory. A futex wait reads its word, so it depends on all writes there, whether it
sleeps or not."""

import random
import subprocess
import unittest

from support import SLALOM, ProgramTest

# Words in both halves of eight bytes, because accesses are reported in units of eight bytes. A thread that sleeps in vain is a
# deadlock.
PROGRAM = r"""
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
static _Alignas(8) _Atomic unsigned words[4];
static unsigned seen[3];
static void sleep_on(unsigned at, unsigned value) { syscall(SYS_futex, &words[at], FUTEX_WAIT, value, 0, 0, 0); }
static void wake(unsigned at, unsigned most) { syscall(SYS_futex, &words[at], FUTEX_WAKE, most, 0, 0, 0); }
static void move(unsigned from, unsigned to, unsigned value) { syscall(SYS_futex, &words[from], FUTEX_CMP_REQUEUE, 1, 9L, &words[to], value); }
"""

OPTIONS = ("--choices", "everywhere", "--keep-going", "--no-shrink", "--out", "")
OPERATIONS = ("sleep_on({at}, {value});", "sleep_on({at}, {value});", "wake({at}, 1);", "wake({at}, 9);", "words[{at}] = {value};",
              "words[{at}] = 1;", "seen[{thread}] += words[{at}];", "words[{at}] += 1;", "move({at}, {other}, {value});")


def program(seed):
    draw = random.Random(seed)
    text = PROGRAM
    for thread in range(3):
        text += f"static void *work{thread}(void *unused) {{\n"
        for _ in range(draw.randint(1, 2)):
            at = draw.choice((0, 1))
            text += "  " + draw.choice(OPERATIONS).format(at=at, other=1 - at, value=draw.choice((0, 0, 1)), thread=thread) + "\n"
        text += "  return unused;\n}\n"
    text += "int main(void) {\n  pthread_t threads[3];\n"
    for thread in range(3):
        text += f"  pthread_create(&threads[{thread}], 0, work{thread}, 0);\n"
    text += "  for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);\n"
    return text + "  return words[0] + 3 * words[1] + 9 * (seen[0] + 3 * seen[1] + 9 * seen[2]);\n}\n"


# The second word is a lock with priority inheritance: the kernel writes its owner, and the other thread reads it.
LOCK = PROGRAM + r"""
static void *own(void *unused) {
  syscall(SYS_futex, &words[1], FUTEX_LOCK_PI, 0, 0, 0, 0);
  syscall(SYS_futex, &words[1], FUTEX_UNLOCK_PI, 0, 0, 0, 0);
  return unused;
}
int main(void) {
  pthread_t thread;
  (void)sleep_on, (void)wake, (void)move;
  pthread_create(&thread, 0, own, 0);
  seen[0] = words[1] != 0;
  seen[1] = words[1] != 0;
  pthread_join(thread, 0);
  return seen[0] + 2 * seen[1];
}
"""


class DporWords(ProgramTest):
    def compile(self, text, name):
        source = self.folder / (name + ".c")
        source.write_text(text)
        subprocess.run([SLALOM, "cc", "-std=c11", "-D_GNU_SOURCE", "-g", "-O1", source, "-o", self.folder / name], check=True)
        return self.folder / name

    def test_the_word_of_a_lock(self):
        binary = self.compile(LOCK, "lock")
        for strategy in ("dfs:bound=none,unfair", "dpor"):
            result = self.run_json(binary, "--strategy", strategy, *OPTIONS)
            # Each read is before, between or after the writes. Exit statuses other than 0 are findings.
            self.assertEqual((result["classes"], len(result["findings"])), (6, 3), strategy)

    def test_the_same_ends_and_deadlocks_as_plain_search(self):
        deadlocks = 0
        for seed in range(SEEDS):
            text = program(seed)
            with self.subTest(text):
                binary = self.compile(text, "words")
                every = self.run_json(binary, "--strategy", "dfs:bound=none,unfair,cache", *OPTIONS)
                reduced = self.run_json(binary, "--strategy", "dpor", *OPTIONS)
                for result in (every, reduced):
                    self.assert_finished(result)
                found = [sorted(finding["title"] for finding in result["findings"]) for result in (reduced, every)]
                self.assertEqual(*found)
                self.assertEqual(reduced["classes"], every["classes"])
                deadlocks += any("eadlock" in title for title in found[0])
        self.assertGreater(deadlocks, SEEDS // 4)


SEEDS = 25

if __name__ == "__main__":
    unittest.main()
