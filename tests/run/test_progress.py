"""A thread that alone runs to the step limit: one that waits for others spins, one that computes does not."""

import json
import unittest

from support import ProgramTest, two_threads

COMPUTES = two_threads("static int table[2][9000]; static int next;",
                       "int *p = table[next++]; for (int i = 1; i < 9000; i++) p[i] = p[i - 1] + i;", "return 0;")
FILLS = two_threads("static volatile int table[100];", "for (int i = 0; i < 20000; i++) table[i % 100] = 7;", "return 0;")
COUNTS = two_threads("#include <stdatomic.h>\nstatic int ready; static atomic_int next;",
                     "if (next++ == 1) { ready = 1; return 0; } "
                     "long n = 0; while (!*(volatile int *)&ready) n++; return (void *)n;", "return 0;")


class Progress(ProgramTest):
    def kinds(self, text, name):
        program = self.build(text, name=name, flags=["-fsanitize=thread"])
        done = self.slalom("run", "--json", "--keep-going", "--schedules", 8, "--max-steps", 10_000, "--detectors", "livelock", "--no-shrink",
                           "--out", "", "--", program, codes=(0, 1, 2))
        result = json.loads(done.stdout)
        self.assertGreater(result["truncated"], 0)
        return [finding["kind"] for finding in result["findings"]]

    def test_a_long_computation_is_no_spin(self):
        self.assertEqual(self.kinds(COMPUTES, "computes"), [])

    def test_a_loop_that_only_writes_is_no_spin(self):
        self.assertEqual(self.kinds(FILLS, "fills"), [])

    def test_a_loop_that_counts_while_it_waits_is_a_spin(self):
        self.assertEqual(self.kinds(COUNTS, "counts"), ["good-samaritan"])


if __name__ == "__main__":
    unittest.main()
