"""slalom boot: a real kernel with its console, the report at the end, and messages for wrong input."""

import json
import subprocess
import unittest

from support import DEADLINE, SLALOM, Case, environment

QUICK = ["boot", "--kernel", "debian:6.1"]


class Boot(Case):
    def test_a_command_runs_in_the_guest_and_the_machine_switches_off(self):
        done = self.expect(0, *QUICK, "--cpus", "2", "--run", "nproc; expr 6 \\* 7; test -d /proc/1 && echo up")
        self.assertIn("2\n42\nup\n", done.stdout)
        self.assertIn("switched itself off", done.stderr)
        self.assertRegex(done.stderr, r"instructions  [\d,]+ \+ [\d,]+\n")

    def test_json_says_all_and_is_the_same_every_time(self):
        arguments = [*QUICK, "--limit", "30000000", "--state-hash-every", "10000000", "--json"]
        first, second = (self.expect(0, *arguments).stdout for _ in range(2))
        self.assertEqual(first, second)
        told = json.loads(first)
        self.assertEqual([each["instructions"] for each in told["hashes"]], [10_000_000, 20_000_000, 30_000_000])
        self.assertEqual(len({each["hash"] for each in told["hashes"]}), 3)
        self.assertEqual(told["stop"], "limit")
        self.assertEqual(sum(told["instructions"]), 30_000_000)

    def test_piped_input_reaches_the_shell(self):
        done = subprocess.run([SLALOM, *QUICK], input="echo $((6 * 7)); exit\n", cwd=self.directory, env=environment(),
                              capture_output=True, text=True, timeout=DEADLINE, check=False)
        self.assertIn("\n42\n", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_another_seed_is_another_run(self):
        hashes = set()
        for seed in ("1", "2"):
            told = json.loads(self.expect(0, *QUICK, "--seed", seed, "--limit", "100000000", "--state-hash-every", "100000000", "--json").stdout)
            hashes.add(told["hashes"][0]["hash"])
        self.assertEqual(len(hashes), 2)


class WrongInput(Case):
    def refuse(self, what, *arguments):
        self.assertIn(what, self.expect(2, "boot", *arguments).stderr)

    def test_sizes_and_counts(self):
        self.refuse("64M to 4G", "--memory", "1M")
        self.refuse("64M to 4G", "--memory", "5G")
        self.refuse("a size as 256M", "--memory", "lots")
        self.refuse("--cpus", "--cpus", "9")
        self.refuse("--cpus", "--cpus", "0")

    def test_files(self):
        self.refuse("debian:6.1", "--kernel", "debian:1.0")
        self.refuse("no file nowhere.elf", "--kernel", "nowhere.elf")
        self.refuse("HOST:GUEST", "--file", "here")
        self.write("text", "this is no kernel\n")
        self.refuse("text", "--kernel", "./text")
        self.refuse("missing", "--initrd", "missing")
        self.refuse("leave out --initrd", "--initrd", self.write("some", "x"), "--run", "ls")


if __name__ == "__main__":
    unittest.main()
