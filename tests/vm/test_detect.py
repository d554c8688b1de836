"""Detectors on saved traces of kernels: the verdicts of the live execution; what was not recorded is said."""

import json
import subprocess
import sys
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, ROOT, SLALOM, Guest, cached_kernels

TEST = ROOT / "examples/kernel/tmpfs-torn-read.toml"

# Fails by its check alone, so that there is an execution without a bug to save.
HARMLESS = """
check = "exit 7"
[[flow]]
calls = "getpid()"
[[flow]]
calls = "getppid()"
"""


def slalom(*arguments):
    return subprocess.run([SLALOM, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE,
                          check=False)


class Detect(Guest):
    def found(self, test, *arguments):
        done = slalom("explore", test, "--workers", 1, "--out", self.directory / "found", "--no-shrink", "--json", *arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return json.loads(done.stdout)["findings"]

    def detect(self, finding, code, *arguments):
        trace = self.directory / "t.slalom"
        done = slalom("replay", finding["capsule"], "--save-trace", trace)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        done = slalom("detect", trace, "--json", *arguments)
        result = json.loads(done.stdout)
        if code is None:  # a race's schedule may show a failure, too
            code = int(any(verdict["severity"] == "failure" for verdict in result["verdicts"]))
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return result

    def test_a_failed_test_and_its_races(self):
        findings = self.found(TEST, "--schedules", 300, "--detectors", "kernel,kernel-race", "--prove", "all")
        self.assertGreater(len({finding["kind"] for finding in findings}), 1)
        for finding in findings:
            with self.subTest(title=finding["title"]):
                result = self.detect(finding, 1 if finding["severity"] == "failure" else None, "--detectors", "kernel")
                self.assertEqual((result["kind"], result["complete"], result["not_seen"]), ("kernel", True, []))
                same = [v for v in result["verdicts"] if v["title"] == finding["title"]]
                self.assertEqual([v["detail"] for v in same], [finding["detail"]])

    def test_a_test_without_a_bug(self):
        test = self.directory / "harmless.toml"
        test.write_text(HARMLESS)
        [finding] = self.found(test, "--schedules", 5, "--detectors", "failure")
        self.assertEqual([v["title"] for v in self.detect(finding, 1)["verdicts"]], [finding["title"]])
        self.assertEqual(self.detect(finding, 0, "--detectors", "kernel-heap,deadlock,kernel-livelock")["verdicts"], [])

    def test_the_first_execution_of_a_search_without_a_bug(self):
        test = self.directory / "harmless.toml"
        test.write_text(HARMLESS.replace("exit 7", "exit 0"))
        trace = self.directory / "t.slalom"
        done = slalom("explore", test, "--schedules", 3, "--workers", 1, "--save-trace", trace)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stderr, r"\Aslalom: warning: the flows do not communicate[^\n]*\n\Z")
        result = json.loads(slalom("detect", trace, "--json").stdout)
        self.assertEqual((result["kind"], result["complete"], result["not_seen"]), ("kernel", True, []))
        self.assertEqual([v for v in result["verdicts"] if v["severity"] == "failure"], [])
        self.assertGreater(result["accesses"], 100)
        self.assertIn("getppid", slalom("trace", trace).stdout)

    def test_what_a_trace_of_a_running_kernel_lacks(self):
        trace = self.directory / "b.slalom"
        done = slalom("boot", "--kernel", KERNEL, "--run", "true", "--trace", "syscalls", "--save-trace", trace)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(slalom("detect", trace, "--json").stdout)
        self.assertEqual(result["verdicts"], [])  # that it was stopped is no livelock
        self.assertEqual(result["kind"], "boot")
        self.assertGreater(result["events"], 10)
        self.assertIn("kernel-heap needs locks, which this trace does not have", result["not_seen"])
        self.assertIn("kernel-heap needs allocations, which this trace does not have", result["not_seen"])
        self.assertIn("kernel-race needs all memory accesses, which this trace does not have", result["not_seen"])
        said = " ".join(slalom("detect", trace).stdout.split())
        self.assertRegex(said, r"nothing found in .* by kernel, but not everything was seen: .*kernel-heap needs locks")


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        sys.exit(NOTHING_TO_DO)
    unittest.main()
