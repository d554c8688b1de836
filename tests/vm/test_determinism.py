"""The same inputs give the same machine: in two processes, from a snapshot file, and in another build of slalom."""

import os
import unittest

from guest import Guest, main

EVERY = 10_000_000
OTHER = os.environ.get("SLALOM_OTHER_BUILD", "")
COMMON_PREFIX = 20_000_000  # builds with sanitizers are slow


class Determinism(Guest):
    def test_boots_are_equal_also_with_a_file_in_the_middle(self):
        hashed = ("--state-hash-every", EVERY)
        first = self.boot("--cpus", 2, "--run", "echo hello", *hashed, "--save", "m.slalom", "--save-at", 123_456_789)
        again = self.boot("--cpus", 2, "--run", "echo hello", *hashed)
        self.assertGreater(len(first["hashes"]), 20)
        self.assertEqual(first, again)

        loaded = self.boot("--load", "m.slalom", *hashed)
        self.assertEqual(loaded["hashes"], [h for h in first["hashes"] if h["instructions"] > 123_456_789])
        self.assertTrue(first["console"].endswith(loaded["console"]))
        for field in ("kernel", "identity", "stop", "instructions", "virtual_nanoseconds"):
            self.assertEqual(loaded[field], first[field])

    def test_a_seed_is_an_input(self):
        limits = ("--limit", 5_000_000, "--state-hash-every", 5_000_000)
        self.assertNotEqual(self.boot(*limits)["hashes"], self.boot(*limits, "--seed", 1)["hashes"])

    @unittest.skipUnless(OTHER, "SLALOM_OTHER_BUILD is not set: there is no other build to compare with")
    def test_another_build_makes_the_same_machine(self):
        limits = ("--cpus", 2, "--limit", COMMON_PREFIX, "--state-hash-every", 1_000_000)
        here = self.boot(*limits)
        self.assertEqual(len(here["hashes"]), 20)
        self.assertEqual(self.boot(*limits, command=os.path.abspath(OTHER)), here)


if __name__ == "__main__":
    main()
