"""The message that a program prints before it aborts, from its own assertions or those of its libraries, is part of the finding's
title."""

import unittest

from support import ProgramTest

ABORTS = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  fputs("something else\n" WORDS "\nand more\n", stderr);
  abort();
}
"""
SAID = {
    "glib": ("**\\nERROR:queue.c:push: assertion failed: (queue)", "ERROR:queue.c:push: assertion failed: (queue)"),
    "absl": ("F1118 queue.cc] Check failed: full", "Check failed: full"),
    "none": ("nothing that is known", ""),
}


class LastWords(ProgramTest):
    def test_titles(self):
        for name, (words, title) in SAID.items():
            program = self.build(ABORTS, name, flags=[f'-DWORDS="{words}"'])
            [finding] = self.run_json(program, "--schedules", 1, "--out", "")["findings"]
            self.assertEqual(finding["kind"], "crash")
            self.assertTrue(finding["title"].endswith("abort" + (": " + title if title else "")), finding["title"])


if __name__ == "__main__":
    unittest.main()
