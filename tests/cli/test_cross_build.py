"""A capsule replays in another build of slalom, such as the sanitizers' or the debug build, and the other way round.

The environment variable SLALOM_OTHER_BUILD holds the path of that build's command. Without it the test does nothing.
"""

import os
import sys
import unittest

from support import SLALOM, Case

OTHER = os.environ.get("SLALOM_OTHER_BUILD", "")
NOTHING_TO_DO = 77  # tests/cli/CMakeLists.txt

PROGRAMS = ["lost-update", "abba-deadlock", "missed-signal", "irq-unmasked", "free-while-reading", "semaphore-as-mutex"]


class CrossBuild(Case):
    def test_both_find_the_same_and_replay_each_other(self):
        for program in PROGRAMS:
            results = {}
            for command, out in ((SLALOM, "here"), (OTHER, "there")):
                result = self.json(1, "explore", f"examples/toy/{program}.toml", "--out", out, command=command)
                del result["seconds"]
                results[out] = result
            replayed = {}
            for made, out in ((SLALOM, "there"), (OTHER, "here")):
                for finding in results[out]["findings"]:
                    shown = self.json(1, "replay", finding["capsule"], command=made)
                    self.assertTrue(shown["same"], f"{finding['title']}, made {out}")
                    del shown["capsule"]
                    replayed.setdefault(finding["signature"], []).append(shown)
            for finding in results["here"]["findings"] + results["there"]["findings"]:
                del finding["capsule"]
            self.assertEqual(results["here"], results["there"], program)
            for here, there in replayed.values():
                self.assertEqual(here, there)


if __name__ == "__main__":
    if not OTHER:
        print("SLALOM_OTHER_BUILD is not set: there is no other build to compare with")
        sys.exit(NOTHING_TO_DO)
    OTHER = os.path.abspath(OTHER)
    unittest.main()
