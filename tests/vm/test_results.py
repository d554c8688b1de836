"""Results of calls: which are compared with serial orders, which are reported as not compared, and the hypercalls of programs."""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, ROOT, SLALOM, cached_kernels

POLL = """
setup = ["mkfifo /tmp/p"]
[[flow]]
name = "poller"
calls = '''
fd = open("/tmp/p", O_RDWR | O_NONBLOCK)
poll({i32 fd, u16 POLLIN, u16 0}, 1, TIMEOUT)
'''
[[flow]]
name = "writer"
calls = '''
fd = open("/tmp/p", O_RDWR | O_NONBLOCK)
write(fd, "x", 1)
'''
"""
MANY = "[[flow]]\ncalls = '''\n" + "getpid()\n" * 8 + "'''\n[[flow]]\ncalls = '''\n" + "getppid()\n" * 8 + "'''\n"
CHOOSER = """
#include <stdlib.h>
#include "slalom.h"
int main(int count, char** arguments) {
  const long flow = atol(arguments[1]);
  slalom_begin(flow);
  const unsigned first = slalom_choose(3), second = slalom_choose(5);
  slalom_note("it has chosen");
  if (first == 2 && second == 4) slalom_fail("two and four");
  slalom_end(flow);
  return 0;
}
"""
PROGRAM = '[[flow]]\nname = "chooser"\nsource = "chooser.c"\n[[flow]]\ncalls = "getppid()"\n'


class Results(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def slalom(self, *arguments):
        return subprocess.run([SLALOM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=DEADLINE, check=False)

    def explore(self, test, *arguments, schedules=100):
        (self.folder / "test.toml").write_text(test)
        return self.slalom("explore", "test.toml", "--schedules", schedules, "--detectors", "failure", *arguments)

    def explore_json(self, test, *arguments, schedules=100):
        done = self.explore(test, "--json", *arguments, schedules=schedules)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def test_what_a_timeout_gives_is_not_judged_and_that_is_said(self):
        code, result = self.explore_json(POLL.replace("TIMEOUT", "1"), "--strategy", "pct")
        self.assertEqual((code, result["findings"]), (0, []))
        self.assertEqual(result["not_compared"],
                         ["results with serial orders (poll({i32 fd, u16 POLLIN, u16 0}, 1, 1) of poller depends on time)"])
        for timeout in ("0", "-1"):
            code, result = self.explore_json(POLL.replace("TIMEOUT", timeout))
            self.assertEqual((code, result["findings"], result.get("not_compared")), (0, [], None))

    def test_all_serial_orders_are_tried(self):
        def orders(*flows):
            test = "".join(f"[[flow]]\ncalls = '''\n{calls}'''\n" for calls in flows)
            _, result = self.explore_json(test, schedules=2)
            return result["serial_orders"]

        ids = "getpid()\n"
        self.assertEqual(orders(ids, ids), 2)
        self.assertEqual(orders(3 * ids, 3 * ids), math.comb(6, 3))
        self.assertEqual(orders(2 * ids, ids, ids), math.factorial(4) // math.factorial(2))
        # A call that waits is left until the other flow has ended: no more and no fewer orders.
        _, result = self.explore_json(POLL.replace("TIMEOUT", "-1"), schedules=2)
        self.assertEqual(result["serial_orders"], math.comb(4, 2))
        self.assertIn("\ncompared: results with those of 6 serial orders of whole system calls\n",
                      self.explore(POLL.replace("TIMEOUT", "-1"), schedules=2).stdout)

    def test_what_a_serial_order_gives_is_no_failure(self):
        """The first flow's rename succeeds, whichever it is: also if the flow that was chosen to start at once waits for the other."""
        test = (ROOT / "examples/kernel/pairs/rename-rename.toml").read_text()
        _, result = self.explore_json(test, "--no-shrink", schedules=64)
        titles = [finding["title"] for finding in result["findings"]]
        self.assertEqual([title for title in titles if "EINVAL" not in title], [])

    def test_too_many_orders_are_said_to_be(self):
        said = "results with serial orders (12870 orders, at most 8000)"
        self.assertEqual(self.explore_json(MANY, schedules=2)[1]["not_compared"], [said])
        self.assertIn(f"\nnot compared: {said}\n", self.explore(MANY, schedules=2).stdout)

    def test_figures_are_told_as_in_json(self):
        _, result = self.explore_json(POLL.replace("TIMEOUT", "-1"))
        text = " ".join(self.explore(POLL.replace("TIMEOUT", "-1")).stdout.split())
        figures = result["statistics"]
        mean = result["steps"] / result["executions"]
        self.assertIn(f"an execution: {figures['instructions_median']:,.0f} instructions (median), {mean:.0f} choice points (mean); "
                      f"{result['communication_points']:,} communication points; ", text)
        self.assertRegex(text, r"; [\d,]+ thousand executions an hour and core ")
        shares = re.search(r"a CPU seemed to wait in (.*?) of them: HLT (.*?), PAUSE (.*?), loop (.*?), starvation (\d+ %|under 1 %)", text)
        for name, said in zip(("h_share", "h1_share", "h2_share", "h3_share", "h4_share"), shares.groups()):
            share = figures[name]
            self.assertEqual(said, "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %", name)
        self.assertGreater(figures["h1_share"], 0)  # the poller sleeps until the writer writes

    def test_programs_choose_note_and_fail(self):
        (self.folder / "chooser.c").write_text(CHOOSER)
        code, result = self.explore_json(PROGRAM, "--strategy", "dfs:limit=0", schedules=1000)
        self.assertEqual(result["not_compared"], ["results with serial orders (chooser is a program)"])
        self.assertEqual((code, len(result["findings"])), (1, 1), result)
        finding = result["findings"][0]
        self.assertRegex(finding["title"], "^assertion failed at .*: two and four$")
        self.assertEqual([choice["value"] for choice in finding["schedule"]["data"]], [2, 4])
        self.assertEqual(finding["replayed"], "10/10")
        # All values, each with both orders of the flows or more: one of 15 combinations fails.
        self.assertEqual((result["end"], result["truncated"]), ("done", 0), result)
        self.assertEqual(finding["occurrences"] * 15, result["executions"], result)
        again = self.slalom("replay", finding["capsule"])
        self.assertEqual(again.returncode, 1)
        self.assertIn("it has chosen", again.stdout)
        self.assertIn("two and four", again.stdout)
        # The whole machine is in the same state, in another process and wherever choices are made.
        for choices in ("as found", "everywhere"):
            again = self.slalom("replay", finding["capsule"], "--choices", choices)
            self.assertTrue(again.stdout.endswith(f"the same again; same state hash {int(finding['state_hash'], 16):#018x}\n"), again.stdout)


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        sys.exit(NOTHING_TO_DO)
    unittest.main()
