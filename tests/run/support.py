"""Shared parts of the tests of slalom run: building small programs and running slalom on them.

The environment variable SLALOM names the command.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SLALOM = os.path.abspath(os.environ["SLALOM"])


def two_threads(before, add, after):
    """A program whose two threads run add(); the arguments are the code before it and the code at the end of main()."""
    return f"""#include <assert.h>
#include <pthread.h>
#include <stdio.h>
{before}
static void *add(void *unused) {{
  {add}
  return unused;
}}
int main(void) {{
  pthread_t a, b;
  pthread_create(&a, 0, add, 0);
  pthread_create(&b, 0, add, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  {after}
}}
"""


# Each access to the counter is locked, but the addition as a whole is not.
LOST_UPDATE = two_threads(
    """static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
}""",
    "set(get() + 1);",
    "assert(counter == 2);")


def line_of(text, words):
    """Returns the number of the first line of a program with these words."""
    return 1 + next(number for number, line in enumerate(text.splitlines()) if words in line)


class ProgramTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def build(self, text, name="prog", suffix=".c", flags=()):
        source = self.folder / (name + suffix)
        source.write_text(text)
        compiler = ["gcc", "-std=c11", "-D_GNU_SOURCE"] if suffix == ".c" else ["g++", "-std=c++20"]
        subprocess.run([*compiler, "-g", "-O1", "-pthread", *flags, source, "-o", self.folder / name], check=True)
        return self.folder / name

    def slalom(self, *arguments, codes=(0, 1), limit=100):
        done = subprocess.run([SLALOM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=limit)
        self.assertIn(done.returncode, codes, done.stdout + done.stderr)
        return done

    def run_json(self, program, *arguments):
        return json.loads(self.slalom("run", "--json", *arguments, "--", program).stdout)

    def fresh(self):
        """Each execution has files of its own; a message queue, with its name, is there only once."""
        (self.folder / "empty").mkdir(exist_ok=True)
        return ("--scratch", "empty", "--workers", 1)

    def assert_finished(self, result, *besides):
        """The search is exhausted except for unseen accesses: most of these programs are not built so that their memory accesses
        are seen."""
        self.assertEqual(result["end"], "done", result["trouble"])
        kinds = {caveat["kind"] for caveat in result["caveats"]}
        if "accesses-not-seen" in kinds:
            self.assertFalse(result["exhausted"])
        self.assertLessEqual(kinds, {"accesses-not-seen", "bound", "fairness", "scope", "idle-timeouts", *besides}, result["trouble"])

    def exhausts(self, program):
        classes = set()
        for strategy in ("dfs", "dpor"):
            result = self.run_json(program, "--strategy", strategy, "--choices", "everywhere", "--schedules", 5000, "--out", "", *self.fresh())
            self.assertEqual(result["findings"], [])
            self.assert_finished(result)
            self.assertEqual(result["uncontrolled"], [])
            classes.add(result["classes"])
        self.assertEqual(len(classes), 1)

    def deadlocks(self, program):
        """The search finds a deadlock, which replays."""
        result = self.run_json(program, "--strategy", "dfs", "--schedules", 5000, *self.fresh())
        [finding] = result["findings"]
        self.assertEqual(finding["kind"], "deadlock")
        self.assertEqual(result["uncontrolled"], [])
        self.assertIn("the same in 3 of 3", self.slalom("replay", finding["capsule"], "--times", 3).stdout)
        return finding


class ErrorTest(ProgramTest):
    """Programs whose finding depends on a call that fails."""

    def find(self, text, name, *arguments, **building):
        """Returns the only finding of a program that is called with these arguments."""
        program = self.build(text, name=name, **building)
        found = json.loads(self.slalom("run", "--json", "--out", name + "-found", "--", program, *arguments, codes=(1,)).stdout)
        [finding] = found["findings"]
        self.assertEqual(finding["replayed"], "10/10")
        return finding

    def replay(self, finding, same):
        result = json.loads(self.slalom("replay", "--json", finding["capsule"], codes=(1 if same else 0,)).stdout)
        self.assertEqual(result["same"], same)
        return result


class OpenMpTest(ProgramTest):
    """Programs with OpenMP's teams, of two threads each."""

    def setUp(self):
        self.environment = dict(os.environ)
        os.environ["OMP_NUM_THREADS"] = "2"

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.environment)

    def program(self, text, *flags, seen=False):
        return self.build(text, flags=["-fopenmp", *flags, *(["-fsanitize=thread"] if seen else [])])

    def search(self, program, *options):
        result = self.run_json(program, "--out", "", "--no-shrink", *options)
        self.assertEqual(result["uncontrolled"], [])
        self.assertEqual(result["trouble"], [])
        return result
