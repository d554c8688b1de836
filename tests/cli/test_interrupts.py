"""Ctrl-C after a bug was found, while it is shrunk and replayed: the finding is kept, and the search ends soon."""

import json
import re
import subprocess
import time
import unittest

from support import Case

# A lost update whose threads compute for a while, so that each execution takes some time. SURE: it fails in all executions.
SLOW = r"""
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static int get(void) {
  pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  return value;
}
static void set(int value) {
  pthread_mutex_lock(&lock);
  counter = value;
  pthread_mutex_unlock(&lock);
}
static void *add(void *unused) {
  for (volatile long i = 0; i < STEPS; ++i) {}
  set(get() + 1);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counter == 2 && !SURE);
}
"""

SLOW_TOY = """
name = "slow"
[shared]
x = { init = 0, atomic = true }
[[thread]]
name = "worker"
code = \"\"\"
for i in 0..200000 { x = i }
assert x == 0
\"\"\"
"""


class Interrupts(Case):
    def program(self, sure, steps):
        flags = ["-g", "-O1", "-pthread", f"-DSURE={sure}", f"-DSTEPS={steps}"]
        subprocess.run(["gcc", *flags, self.write("slow.c", SLOW), "-o", "slow"], cwd=self.directory, check=True)
        return ["run", "--strategy", "random", "--workers", 1, "--", "./slow"]

    def interrupted(self, wanted, arguments):
        """Returns the terminal's contents, as unbroken lines, after a Ctrl-C as soon as `wanted` was there."""
        shown = self.terminal(*arguments)
        shown.read_until(wanted)
        shown.interrupt()
        code = shown.wait()
        self.assertEqual(code, 1, shown.text)
        self.assertIn("\r\x1b[Kslalom: stopping; keeping what was found (again: at once)\r\n", shown.text)
        text = re.sub(r"\x1b\[[0-9;]*[mK]", "", shown.text)
        return re.sub(r"\s+", " ", text.rsplit("\r\x1b[K", 1)[-1])

    def kept(self):
        [capsule] = self.directory.glob("slalom-findings/*/capsule.slalom")
        finding = json.loads((capsule.parent / "finding.json").read_text())
        same, tried = map(int, finding["replayed"].split("/"))
        self.assertEqual(same, tried)
        self.assertIn("(interrupted)", (capsule.parent / "report.txt").read_text())
        self.assertIn("the same again", self.expect(1, "replay", capsule).stdout)
        return finding, tried

    def test_while_it_is_replayed(self):
        text = self.interrupted("replaying it for the 3rd time", self.program(sure=1, steps=20_000_000))
        finding, tried = self.kept()
        self.assertIn(tried, range(2, 10))
        self.assertIn(f"Replayed {tried}/{tried} (interrupted): the same bug every time.", text)
        self.assertIn("interrupted: 1 finding was kept, but not shrunk and replayed to the end", text)
        self.assertNotEqual(finding["minimality"], "unshrunk")

    def test_while_it_is_shrunk(self):
        text = self.interrupted("shrinking it", self.program(sure=0, steps=100_000_000))
        finding, tried = self.kept()
        self.assertEqual(tried, 1)
        self.assertNotEqual(finding["minimality"], "minimum")  # proving a minimum takes far more executions than were done
        if finding["minimality"] == "unshrunk":
            self.assertIn("not shrunk to the end", text)
        self.assertIn("Replayed 1/1 (interrupted)", text)

    def test_the_time_is_for_everything(self):
        """On a busy machine the search takes all of it, and still has the finding of its first execution."""
        arguments = self.program(sure=1, steps=200_000_000)
        begun = time.monotonic()
        found = json.loads(self.expect(1, arguments[0], "--json", "--time", "1s", *arguments[1:]).stdout)
        self.assertLess(time.monotonic() - begun, 30)
        [finding] = found["findings"]
        same, tried = map(int, finding["replayed"].split("/"))
        self.assertEqual(same, tried)
        # Shrinking or, on a fast machine, the replays were cut short. The report says which.
        self.assertEqual(found["unfinished"], 1)
        report = " ".join((self.directory / finding["capsule"]).with_name("report.txt").read_text().split())
        if finding["minimality"] == "unshrunk":
            self.assertIn("not shrunk to the end, since the time was up", report)
        else:
            self.assertLess(tried, 10)
            self.assertIn("time was up", report)

    def test_of_a_toy_program(self):
        toy = self.write("slow.toml", SLOW_TOY)
        text = self.interrupted("replaying it for the 2nd time", ["explore", toy, "--strategy", "random", "--max-steps", 1000000, "--schedules", 1])
        _, tried = self.kept()
        self.assertIn(tried, range(1, 10))
        self.assertIn(f"Replayed {tried}/{tried} (interrupted)", text)


if __name__ == "__main__":
    unittest.main()
