"""Lack of memory is an environment error: exit code 2 and a message, whichever part ran out of memory, and never "a bug in
slalom"."""

import resource
import subprocess
import unittest

from support import SLALOM, Case, environment

WIDE = """
name = "wide"
[shared]
x = { init = 0, atomic = true }
[[thread]]
name = "t"
copies = 4
code = "for i in 0..6 { x = x + id }"
"""


class Memory(Case):
    def limited(self, megabytes, *arguments):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

        return subprocess.run([SLALOM, *map(str, arguments)], cwd=self.directory, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, check=False, preexec_fn=limit)

    def test_every_limit_is_enough_or_said_to_be_too_little(self):
        self.write("wide.toml", WIDE)
        capsule = self.capsule()
        said = set()
        explore = ["explore", "wide.toml", "--out", "", "--strategy", "dpor", "--time", "0.5s", "--workers"]
        for command, limits in (([*explore, 1], (24, 32, 40)), ([*explore, 4], (40, 60, 100, 200)), (["replay", capsule, "--full"], (24, 28, 32)),
                                (["boot", "--limit", 1000], (24, 60, 100))):
            for megabytes in limits:
                done = self.limited(megabytes, *command)
                text = done.stdout + done.stderr
                self.assertIn(done.returncode, (0, 1, 2, 127), f"{megabytes} MiB, {command}: {text}")
                self.assertNotIn("internal error", text)
                if "out of memory" in text:  # if the dynamic linker itself has too little memory, it is 127
                    self.assertEqual(done.returncode, 2, text)
                    self.assertIn("raise the limit (ulimit -v)", text)
                if "out of memory" in text or "the system refuses" in text:
                    said.add(command[-1])
        self.assertLessEqual({4, 1000}, said)  # explore with workers, and boot


if __name__ == "__main__":
    unittest.main()
