"""An execution with the same end but another state counts as a failed replay."""

import json
import unittest

from support import ProgramTest

# Each execution is longer than the one before, because the file that it adds to is.
GROWS = """#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *run(void *unused) {
  pthread_mutex_lock(&m);
  pthread_mutex_unlock(&m);
  return unused;
}
int main(void) {
  pthread_t t;
  char text[4096];
  int file = open("count", O_RDWR | O_CREAT | O_APPEND, 0600);
  int n = read(file, text, sizeof text);
  if (write(file, "x", 1) != 1) return 1;
  close(file);
  pthread_create(&t, 0, run, 0);
  for (int i = 0; i < n % 7; i++) run(0);
  pthread_join(t, 0);
  assert(0);
}
"""


class OtherState(ProgramTest):
    def test_is_no_replay(self):
        program = self.build(GROWS)
        [finding] = self.run_json(program, "--strategy", "random", "--no-shrink")["findings"]
        same, tried = map(int, finding["replayed"].split("/"))
        self.assertEqual(tried, 10)
        self.assertLess(same, 5)
        # It comes again where the file has grown by seven: the same now and then is not the same.
        replayed = json.loads(self.slalom("replay", "--json", finding["capsule"], "--times", 14, codes=(0,)).stdout)
        same, tried = map(int, replayed["replayed"].split("/"))
        self.assertEqual(tried, 14)
        self.assertGreater(same, 0)
        self.assertLess(same, tried)
        self.assertFalse(replayed["same"])



if __name__ == "__main__":
    unittest.main()
