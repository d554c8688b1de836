"""The second half of ./run demo: a kernel's bug found, explained and replayed."""

import os
import subprocess
import sys
import tempfile
import unittest

from guest import DEADLINE, KERNEL, NOTHING_TO_DO, ROOT, SLALOM, cached_kernels


class Demo(unittest.TestCase):
    def test_it_shows_what_it_promises(self):
        with tempfile.TemporaryDirectory() as scratch:
            shown = subprocess.run([ROOT / "scripts/demo-kernel"], capture_output=True, text=True, timeout=DEADLINE, check=False,
                                   stdin=subprocess.DEVNULL,
                                   env={**os.environ, "SLALOM": SLALOM, "SLALOM_DEMO_FINDINGS": scratch + "/findings"})
        self.assertEqual((shown.returncode, shown.stderr), (0, ""), shown.stdout[-2000:])
        for words in ("NULL pointer dereference in pipe_open:join_pipe", "Replayed 10/10", "same in 3 of 3 replays",
                      "pipe-open-fixed: nothing found in 500 executions"):
            self.assertIn(words, shown.stdout)


if __name__ == "__main__":
    if KERNEL not in cached_kernels():
        sys.exit(NOTHING_TO_DO)
    unittest.main()
