"""The values that a trace shows for plain stores: the ones that the program wrote, or none."""

import re
import unittest

from support import ProgramTest, line_of

# The comment on a line lists the values that its stores write, in order; "?" also passes.
STORES = r"""
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct pair { int32_t a, b; };
struct wide { int64_t words[3]; };
struct __attribute__((packed)) odd { char c; int32_t i; };
int32_t flag; int64_t big; int16_t small; int8_t byte; double real;
struct pair from = {5, 6}, to; struct wide many = {{7, 8, 9}}, more; struct odd odd;
union { int32_t whole; int8_t part[4]; } both;
_Atomic int32_t atomic; char text[16]; volatile int32_t again, other; volatile size_t size = 16; int32_t *gone;
static void *other_thread(void *unused) {
  other = 100; // 100
  return unused;
}
int main(void) {
  pthread_t thread;
  flag = 3; // 3
  big = 0x123456789abcdef0; // 0x123456789abcdef0
  small = -2; // -2
  byte = 4; // 4
  real = 1.0; // 0x3ff0000000000000
  to = from; // 0x600000005
  more = many; // 7 8 9
  odd.i = 77; // 77
  both.whole = 0x01010101; // 16843009
  both.part[1] = 2; // 2
  again = 1; // 1
  again = 2; // 2
  again = again; // 2
  *(int32_t *)&atomic = 11; // 11
  atomic_store_explicit(&atomic, 12, memory_order_relaxed);
  *(int32_t *)&atomic = 13; // 13
  memset(text, 1, size); // 0x101010101010101 0x101010101010101
  text[0] = 9; // 9
  snprintf(text, 8, "%d", 1234567);
  gone = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *gone = 21; // 21
  munmap(gone, 4096);
  pthread_create(&thread, 0, other_thread, 0);
  other = 50; // 50
  other = 51; // 51
  pthread_join(thread, 0);
  flag = 8; // 8
  assert(flag != 8);
}
"""
LATE = r"""
#include <assert.h>
#include <pthread.h>
int flag[2], seen[2];
static void *one(void *at) {
  long i = (long)at;
  flag[i] = 7; // 7
  seen[i] = flag[1 - i];
  return 0;
}
int main(void) {
  pthread_t a, b;
  flag[0] = 3; // 3
  flag[1] = 3; // 3
  pthread_create(&a, 0, one, (void *)0);
  pthread_create(&b, 0, one, (void *)1);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(seen[0] == 3 || seen[1] == 3);
}
"""


class ValuesTest(ProgramTest):
    def trace(self, text, name, *options):
        program = self.build(text, name=name, flags=["-fsanitize=thread", "-Wno-tsan"])
        finding = self.run_json(program, "--no-shrink", *options)["findings"][0]
        self.assertEqual(finding["replayed"], "10/10")
        return self.slalom("replay", "--trace", finding["capsule"]).stdout

    def stores(self, trace, name):
        """Returns the values of the stores of each source line."""
        found = {}
        for line, value in re.findall(rf"{name}\.c:(\d+) .* store +\S.* (\S+)$", trace, re.M):
            found.setdefault(int(line), []).append(value)
        return found

    def check(self, text, name, unknown, *options):
        stores = self.stores(self.trace(text, name, *options), name)
        for number, line in enumerate(text.splitlines(), 1):
            if "; // " not in line:
                continue
            wanted = line.split("// ")[1].split()
            seen = stores[number][-len(wanted):]
            for value, shown in zip(wanted, seen, strict=True):
                self.assertIn(shown, [value, "?"] if number in unknown else [value], line)

    def test_stores_of_every_size_show_what_they_wrote(self):
        # A store of the value that is already there, next to a load, cannot be distinguished from a store that is still to come.
        unknown = [line_of(STORES, words) for words in ("*gone = 21", "text[0] = 9")]
        self.check(STORES, "stores", unknown)
        self.check(STORES, "stores", unknown + [line_of(STORES, "again = again")], "--choices", "everywhere", "--strategy", "random")

    def test_a_store_before_a_switch_shows_what_it_wrote(self):
        for seed in (1, 2, 3):
            self.check(LATE, "late", [], "--choices", "everywhere", "--strategy", "random", "--seed", seed)

    def test_a_report_shows_what_was_written(self):
        self.trace(LATE, "report")
        report = next(self.folder.glob("slalom-findings/*/report.txt")).read_text()
        self.assertIn("wrote 7", report)


if __name__ == "__main__":
    unittest.main()
