"""Detectors on saved traces: the verdicts of the live execution, on a machine that has nothing but the trace."""

import json
import os
import resource
import shutil
import subprocess
import tempfile
import unittest

from support import FIXED, LOST_UPDATE, ROOT, SLALOM, Case, environment

FORGE = os.path.abspath(os.environ.get("FORGE", ROOT / "build/tests/cli/forge"))
TOYS = sorted(path for path in (ROOT / "examples/toy").glob("*.toml")
              if not path.stem.endswith(".fixed") and path.with_name(path.stem + ".fixed.toml").exists())

# No thread ends before both have added to x, and a lock orders the additions to y.
MEETING = """
name = "meeting"
about = "Two threads meet at a barrier."
[shared]
x = 0
y = { atomic = true, init = 0 }
[sync]
m = "mutex"
b = { kind = "barrier", parties = 2 }
[[thread]]
name = "worker"
copies = 2
code = '''
x = x + 1
lock m
y = y + 1
unlock m
arrive b
'''
[final]
check = "x == 2"
message = "an update was lost"
"""


class Detect(Case):
    def trace_of(self, capsule, code=1, *options):
        self.expect(code, "replay", capsule, "--save-trace", "t.slalom", *options)
        return "t.slalom"

    def forged_capsule(self, toy, *steps):
        """A capsule of a program without a bug: its replay is any execution of it."""
        (self.directory / "text").write_text("x")
        subprocess.run([FORGE, "capsule", self.directory / "f.slalom", "toy", "twin", toy, self.directory / "text", *steps],
                       check=True)
        return "f.slalom"

    def test_each_toy_program_and_its_fixed_twin(self):
        self.assertGreater(len(TOYS), 25)
        for toy in TOYS:
            with self.subTest(toy=toy.stem):
                found = self.slalom("explore", toy, "--json", "--schedules", 2000, "--detectors", "default")
                self.assertEqual(found.returncode, 1, found.stderr)
                for finding in json.loads(found.stdout)["findings"]:
                    trace = self.trace_of(finding["capsule"])
                    verdicts = self.json(1 if finding["severity"] != "suspicion" else 0, "detect", trace, "--detectors", "all")["verdicts"]
                    same = [v for v in verdicts if v["title"] == finding["title"]]
                    self.assertEqual(len(same), 1, verdicts)
                    self.assertEqual({k: same[0][k] for k in ("kind", "severity", "detail")},
                                     {k: finding[k] for k in ("kind", "severity", "detail")})
                self.trace_of(self.forged_capsule(toy.with_name(toy.stem + ".fixed.toml")), 0)
                self.assertEqual(self.json(0, "detect", "t.slalom")["verdicts"], [])

    def test_the_trace_is_all_that_is_needed(self):
        trace = self.trace_of(self.capsule())
        with tempfile.TemporaryDirectory() as elsewhere:
            shutil.copy(self.directory / trace, elsewhere)
            done = self.expect(1, "detect", trace, cwd=elsewhere)
            self.assertIn("data race on x: worker:1 (load) / worker:1 (store)\n", done.stdout)
            self.assertRegex(done.stdout, r"\nlost-update: 3 findings in 4 accesses and 3 events by default\n$")
            printed = self.expect(0, "trace", trace, cwd=elsewhere)
        self.assertIn("worker#1", printed.stdout)

    def test_what_is_printed_is_what_the_replay_shows(self):
        capsule = self.capsule()
        whole = self.expect(1, "replay", capsule, "--trace", "--save-trace", "t.slalom").stdout
        printed = self.expect(0, "trace", "t.slalom").stdout
        self.assertIn(printed, whole)
        self.assertEqual(self.expect(0, "trace", "t.slalom", "--capsule", capsule).stdout, printed)
        numbers = self.expect(0, "trace", "t.slalom", "--numbers").stdout
        self.assertNotIn("worker", numbers)
        self.assertEqual(len(numbers.splitlines()), len(printed.splitlines()))

    def test_what_a_trace_teaches(self):
        (self.directory / "meeting.toml").write_text(MEETING)
        self.trace_of(self.capsule("meeting.toml"))
        self.assertEqual(self.expect(0, "trace", "t.slalom", "--places").stdout,
                         "agents communicate at:\n  worker:1\n"
                         "atomic operations that other synchronisation orders:\n  worker:3\n")
        # One thread has ended before the other one's store.
        self.trace_of(self.capsule())
        self.assertEqual(self.expect(0, "trace", "t.slalom", "--places").stdout, "agents communicate at: none\n")

    def test_a_trace_that_was_cut_off(self):
        trace = self.trace_of(self.capsule())
        whole = (self.directory / trace).read_bytes()
        (self.directory / "cut.slalom").write_bytes(whole[:-10])
        done = self.slalom("detect", "cut.slalom")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        said = " ".join(done.stdout.split())
        self.assertRegex(said, r"2 findings in \d+ accesses and \d+ events by default, but not everything was seen: "
                               r"it was cut off at byte \d+, after \d+ accesses and \d+ events$")
        self.assertIn("the trace is not complete: it was cut off at byte", self.expect(0, "trace", "cut.slalom").stderr)
        found = self.json(1, "detect", "cut.slalom")
        self.assertEqual((found["complete"], len(found["not_seen"])), (False, 1))
        for size in (0, 5, 39, 40, 50):
            (self.directory / "cut.slalom").write_bytes(whole[:size])
            self.assertRegex(self.expect(2, "detect", "cut.slalom").stderr, r"^slalom: cut.slalom: \S")

    def test_the_first_execution_of_a_search_without_a_bug(self):
        self.expect(0, "explore", FIXED, "--save-trace", "t.slalom")
        result = self.json(0, "detect", "t.slalom", "--detectors", "all")
        self.assertEqual((result["kind"], result["target"], result["complete"]), ("toy", "lost-update-fixed", True))
        self.assertEqual((result["verdicts"], result["not_seen"]), ([], []))
        self.assertIn("worker#1", self.expect(0, "trace", "t.slalom").stdout)

    def test_the_first_execution_is_the_same_with_any_number_of_workers(self):
        traces = set()
        for workers in (1, 3):
            self.expect(1, "explore", LOST_UPDATE, "--strategy", "random", "--schedules", 50, "--workers", workers,
                        "--save-trace", "t.slalom")
            traces.add((self.directory / "t.slalom").read_bytes())
        self.expect(1, "explore", LOST_UPDATE, "--strategy", "random", "--schedules", 50, "--seed", 2, "--save-trace", "t.slalom")
        traces.add((self.directory / "t.slalom").read_bytes())
        self.assertEqual(len(traces), 2)

    def test_a_search_that_made_no_execution_has_no_trace(self):
        self.expect(0, "explore", FIXED, "--state", "s")
        done = self.expect(2, "explore", FIXED, "--state", "s", "--save-trace", "t.slalom")
        self.assertIn("there is no trace to save in t.slalom: no execution came to an end", done.stderr)
        self.assertIn("exhausted", done.stdout)
        self.assertFalse((self.directory / "t.slalom").exists())

    def test_only_what_is_asked_for(self):
        trace = self.trace_of(self.capsule())
        self.assertEqual([v["kind"] for v in self.json(1, "detect", trace, "--detectors", "failure")["verdicts"]], ["assertion"])
        self.assertEqual({v["kind"] for v in self.json(1, "detect", trace, "--detectors", "race")["verdicts"]}, {"data-race"})
        self.assertEqual(self.json(0, "detect", trace, "--detectors", "heap")["verdicts"], [])
        self.assertIn("unknown detector 'rice'", self.expect(2, "detect", trace, "--detectors", "rice").stderr)

    def test_an_execution_too_long_for_a_report_is_saved(self):
        (self.directory / "long.toml").write_text("""
name = "long"
[shared]
x = { init = 0 }
[[thread]]
name = "worker"
code = "for i in 0..2600000 { x = x + 1 }"
""")
        done = self.expect(0, "replay", self.forged_capsule(self.directory / "long.toml", "9000000"), "--save-trace", "t.slalom")
        self.assertIn("The execution is too long for a report. All of it is in t.slalom: print it with `slalom trace t.slalom`.",
                      " ".join(done.stdout.split()))
        result = self.json(0, "detect", "t.slalom")
        self.assertEqual((result["accesses"], result["complete"], result["verdicts"]), (5_200_000, True, []))

    def test_a_trace_larger_than_memory(self):
        count = 10_000_000
        memory = 256 << 20  # of address space; the accesses alone would take 320 MB
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)), "cwd": self.directory,
                   "env": environment(), "capture_output": True, "text": True, "check": False}
        forged = subprocess.run([FORGE, "long-trace", "long.slalom", str(count)], **limited)
        self.assertEqual(forged.returncode, 0, forged.stderr)
        done = subprocess.run([SLALOM, "detect", "long.slalom"], **limited)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("data race on 0x888000", done.stdout)
        self.assertIn("long: 1 finding in 10,000,002 accesses and 0 events by default", done.stdout)

    def test_a_pipe_will_do(self):
        trace = self.trace_of(self.capsule())
        done = subprocess.run(f"cat {trace} | {SLALOM} detect /dev/stdin", shell=True, cwd=self.directory,
                              env=environment(), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_other_files(self):
        capsule = self.capsule()
        self.assertIn("this is a capsule, not a trace; use `slalom replay` for it", self.expect(2, "detect", capsule).stderr)
        self.assertIn("not a slalom file", self.expect(2, "detect", LOST_UPDATE).stderr)
        self.assertIn("cannot read none", self.expect(2, "detect", "none").stderr)
        trace = self.trace_of(capsule)
        self.assertIn("this is a trace, not a capsule", self.expect(2, "replay", trace).stderr)

    def test_a_trace_of_an_older_version(self):
        old = ROOT / "tests/golden/formats/v2-trace.slalom"
        found = self.json(0, "detect", old)
        self.assertTrue(found["complete"])
        self.assertIn("holds neither names", found["not_seen"][0])


# Ends with a finding either way, so that both variants have a capsule.
TWO_LOCKS = """
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void* worker(void* lock) {
  pthread_mutex_lock(lock);
  ++counter;
  pthread_mutex_unlock(lock);
  return 0;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, worker, SECOND);
  worker(&first);
  pthread_join(other, 0);
  assert(!"this is the end");
}
"""


class Program(Case):
    def trace_of(self, name, lock):
        self.write(f"{name}.c", TWO_LOCKS)
        self.expect(0, "cc", "-g", "-O1", f"-DSECOND=&{lock}", f"{name}.c", "-o", name, "-lpthread")
        findings = json.loads(self.expect(1, "run", "--json", "--", f"./{name}").stdout)["findings"]
        self.expect(1, "replay", next(f["capsule"] for f in findings if f["kind"] == "assertion"), "--save-trace", "t.slalom")
        for left in (name, f"{name}.c"):
            (self.directory / left).unlink()  # names come from the trace
        return findings

    def test_the_first_execution_of_a_program(self):
        self.write("fixed.c", TWO_LOCKS.replace('assert(!"this is the end");', "return 0;"))
        self.expect(0, "cc", "-g", "-O1", "-DSECOND=&first", "fixed.c", "-o", "fixed", "-lpthread")
        self.expect(0, "run", "--schedules", 20, "--save-trace", "t.slalom", "--", "./fixed")
        result = self.json(0, "detect", "t.slalom", "--detectors", "all")
        self.assertEqual((result["kind"], result["complete"], result["verdicts"]), ("program", True, []))
        (self.directory / "fixed").unlink()
        self.assertIn("fixed.c:8 (worker)", self.expect(0, "trace", "t.slalom").stdout)

    def test_a_program_and_its_fixed_twin(self):
        found = self.trace_of("broken", "second")
        verdicts = self.json(1, "detect", "t.slalom")["verdicts"]
        self.assertEqual({v["kind"] for v in verdicts}, {"assertion", "data-race"})
        for verdict in verdicts:
            self.assertIn(verdict["title"], [f["title"] for f in found])
            self.assertIn("broken.c:", verdict["title"] + verdict["detail"])
        self.assertIn("broken.c:8 (worker)", self.expect(0, "trace", "t.slalom").stdout)
        self.trace_of("fixed", "first")
        self.assertEqual([v["kind"] for v in self.json(1, "detect", "t.slalom")["verdicts"]], ["assertion"])
        self.assertEqual(self.json(0, "detect", "t.slalom", "--detectors", "race,deadlock,heap,leak")["verdicts"], [])


if __name__ == "__main__":
    unittest.main()
