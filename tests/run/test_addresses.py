"""What programs allocate has the same addresses in the search and in replays, whatever their calls gave."""

import unittest

from support import ProgramTest, two_threads

# Which bucket the block is in depends on its address, which depends on what was allocated before.
PRINTS = r"""
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static unsigned long sum;
static void see(void *address) {
  pthread_mutex_lock(&lock);
  sum = sum * 31 + (unsigned long)address;
  fprintf(stderr, "%p\n", address);
  pthread_mutex_unlock(&lock);
}"""
UPDATE = r"""
  pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  counter = value + 1;
  pthread_mutex_unlock(&lock);"""
EVERYTHING = r"""
  int local;
  char *text = strdup("text");
  char *large = malloc(300000);
  void *mapped = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  see(&local), see(text), see(large), see(mapped), see((void *)pthread_self());
  free(text), free(large);"""
MISSING = r"""
  FILE *missing = fopen("/nonexistent", "r");
  assert(missing == NULL);
  see(malloc(600));"""
FOLDER = r"""
  FILE *folder = fopen("/", "r");
  assert(folder != NULL && fgetc(folder) == EOF);
  see(malloc(600));
  see(malloc(5000));"""
HEADERS = "#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n"


class Addresses(ProgramTest):
    def test_of_all_kinds_whatever_calls_gave(self):
        for name, act in (("everything", EVERYTHING), ("missing", MISSING), ("folder", FOLDER)):
            program = self.build(two_threads(HEADERS + PRINTS, act + UPDATE, "assert(counter == 2);"), name, flags=["-fsanitize=thread"])
            for option in ("--no-shrink", "--from-main"):
                result = self.run_json(program, option)
                [finding] = [one for one in result["findings"] if one["severity"] == "failure"]
                with self.subTest(program=name, option=option):
                    self.assertEqual(finding["replayed"], "10/10")


if __name__ == "__main__":
    unittest.main()
