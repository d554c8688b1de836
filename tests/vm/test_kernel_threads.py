"""A kernel thread on a CPU of its own is a context like any other. A bug that needs it to run between two instructions of a flow is
found, but not if the search does not decide about that CPU. The thread's work is no wrong result."""

import json
import subprocess
import sys
import unittest

from guest import DEADLINE, NOTHING_TO_DO, ROOT, SLALOM, Guest, main

FOLDER = ROOT / "examples" / "kernel-modules" / "late_cancel"
TITLE = "use after free: in late_cancel:cancel, freed in late_cancel:handle_requests"


class KernelThreads(Guest):
    def explore(self, name, *more, first_lines=""):
        test = self.directory / name
        test.write_text(first_lines + (FOLDER / name).read_text())
        done = subprocess.run([SLALOM, "explore", test, "--json", "--no-shrink", "--detectors", "console,deadlock,failure,kernel-heap",
                               *map(str, more)], cwd=self.directory, capture_output=True, text=True, timeout=DEADLINE, check=False)
        if done.returncode == 2 and "scripts/build-modules" in done.stderr:
            print(done.stderr)
            sys.exit(NOTHING_TO_DO)
        return json.loads(done.stdout)

    def test_a_thread_runs_between_two_instructions_of_a_flow(self):
        result = self.explore("test.toml", "--schedules", 2000, "--first", "--out", "out")
        self.assertEqual([(f["title"], f["replayed"]) for f in result["findings"]], [(TITLE, "10/10")])
        self.assertNotIn("late_cancel", result["unpinned_threads"])
        shown = subprocess.run([SLALOM, "replay", result["findings"][0]["capsule"]], cwd=self.directory, capture_output=True, text=True,
                               timeout=DEADLINE, check=False)
        self.assertEqual(shown.returncode, 1, shown.stdout + shown.stderr)
        self.assertIn("same state hash", shown.stdout)
        self.assertIn(" -> client", shown.stdout)  # back from the CPU with the thread

    def test_it_does_not_where_its_cpu_is_no_context(self):
        only = 'contexts = ["cpu0", "timer"]\n'
        self.assertEqual(self.explore("test.toml", "--schedules", 2000, "--out", "", first_lines=only)["findings"], [])

    def test_what_calls_give_before_and_after_its_work_is_right(self):
        """Cancelling finds the request or does not: serial orders give both results."""
        result = self.explore("fixed.toml", "--schedules", 300, "--out", "")
        self.assertEqual((result["findings"], result.get("not_compared", [])), ([], []))


if __name__ == "__main__":
    main()
