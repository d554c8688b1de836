"""A dry run: what the calls of a test return without a search, and the warning when there is nothing to explore."""

import json
import pathlib
import subprocess
import tempfile
import unittest

from guest import DEADLINE, SLALOM, main

WRONG = """[[flow]]
name = "writer"
calls = '''
fd = open("/tmp/none", O_RDWR)
write(fd, "x", 1)
'''
[[flow]]
name = "reader"
calls = "read(7, &got(16), 16)"
"""
WAITS = """setup = ["mkfifo /tmp/p"]
[[flow]]
name = "reader"
calls = '''
fd = open("/tmp/p", O_RDWR)
read(fd, &got(16), 16)
'''
[[flow]]
name = "writer"
calls = '''
fd = open("/tmp/p", O_RDWR)
write(fd, "abc", 3)
'''
"""
WARNING = "slalom: warning: the flows do not communicate"


class DryRun(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def explore(self, test, *arguments):
        (self.folder / "test.toml").write_text(test)
        done = subprocess.run([SLALOM, "explore", "test.toml", *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_wrong_arguments_show_at_once(self):
        done = self.explore(WRONG, "--dry")
        self.assertIn('   4  fd = open("/tmp/none", O_RDWR)  = -ENOENT\n   5  write(fd, "x", 1)               = -EBADF\n', done.stdout)
        self.assertIn("   9  read(7, &got(16), 16)  = -EBADF\n", done.stdout)
        self.assertRegex(done.stdout, r"writer: [\d,]+ instructions, 0 choice points\n")
        self.assertTrue(done.stderr.startswith(WARNING), done.stderr)

    def test_a_search_warns_if_its_flows_do_not_communicate(self):
        done = self.explore(WRONG, "--schedules", "5")
        self.assertTrue(done.stderr.startswith(WARNING), done.stderr)
        self.assertIn("1 distinct interleaving", done.stdout)
        self.assertEqual(self.explore(WAITS, "--schedules", "5").stderr, "")

    def test_a_call_that_waits_lets_the_next_flow_run(self):
        run = json.loads(self.explore(WAITS, "--dry", "--json").stdout)
        reader, writer = run["flows"]
        self.assertEqual([call["result"] for call in reader["calls"]], ["3", "3"])
        self.assertEqual([call["waited"] for call in reader["calls"]], [False, True])
        self.assertEqual([call["result"] for call in writer["calls"]], ["3", "3"])
        self.assertGreater(min(flow["choice_points"] for flow in run["flows"]), 10)
        self.assertEqual((run["ended"], run["warnings"]), ("", []))

    def test_a_call_that_never_returns_has_no_result(self):
        alone = WAITS.replace('write(fd, "abc", 3)', "getppid()")
        run = json.loads(self.explore(alone, "--dry", "--json").stdout)
        self.assertEqual([call["result"] for call in run["flows"][0]["calls"]], ["3", ""])
        self.assertEqual(run["ended"], "no flow can go on: each that has not ended waits")


if __name__ == "__main__":
    main()
