"""scripts/bootstrap against a pretended system: what dpkg-query, id and apt-get say is decided by the test."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Bootstrap(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.bin = Path(directory.name)
        self.calls = self.bin / "calls"
        self.command("apt-get", f'echo "$*" >> {self.calls}')

    def command(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def bootstrap(self, uid, without=(), residue=(), path=None):
        """Runs it on a system with all packages but `without`; those of `residue` were removed but not purged."""
        self.command("id", f"echo {uid}")
        self.command(
            "dpkg-query",
            'for package do case "$package" in\n'
            + "".join(f"{name}) status=1 ;;\n" for name in without)
            + "".join(f"{name}) echo config-files {name} ;;\n" for name in residue)
            + '-*|\\$*) ;;\n*) echo "installed $package" ;;\nesac done\nexit ${status:-0}',
        )
        path = f"{self.bin}:{os.environ['PATH']}" if path is None else path
        env = {"PATH": path}
        return subprocess.run(["/bin/sh", ROOT / "scripts/bootstrap"], capture_output=True, text=True, env=env)

    def apt_calls(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_silent_when_nothing_is_missing(self):
        for uid in (0, 1000):
            run = self.bootstrap(uid)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))
        self.assertEqual(self.apt_calls(), [])

    def test_root_installs_exactly_what_is_missing(self):
        run = self.bootstrap(0, without=["cmake", "libfmt-dev"])
        self.assertEqual(run.returncode, 0, run.stderr)
        update, install = self.apt_calls()
        self.assertIn("update", update.split())
        words = install.split()
        self.assertEqual([word for word in words if not word.startswith("-")], ["install", "cmake", "libfmt-dev"])
        self.assertIn("-y", words)

    def test_a_removed_package_is_missing(self):
        self.bootstrap(0, residue=["ccache"])
        self.assertEqual(self.apt_calls()[-1].split()[-1], "ccache")

    def test_names_that_contain_each_other_are_not_confused(self):
        # "g++" is no pattern, and being part of another name is not being installed.
        self.bootstrap(0, without=["g++"])
        self.assertEqual(self.apt_calls()[-1].split()[-1], "g++")

    def test_others_get_one_command_to_run(self):
        run = self.bootstrap(1000, without=["ninja-build", "python3"])
        self.assertEqual(run.returncode, 2)
        self.assertEqual(self.apt_calls(), [])
        commands = [line for line in run.stderr.splitlines() if "apt-get" in line]
        self.assertEqual(len(commands), 1)
        # The command really is one: with a sudo that just runs it, it installs what was missing.
        self.command("sudo", '"$@"')
        self.command("su", 'sh "$@"')
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}"}
        subprocess.run(commands[0], shell=True, check=True, env=env)
        self.assertEqual(self.apt_calls()[-1].split()[-2:], ["ninja-build", "python3"])

    def test_a_failed_installation_is_a_failure(self):
        self.command("apt-get", "exit 100")
        self.assertNotEqual(self.bootstrap(0, without=["cmake"]).returncode, 0)

    def test_other_systems_are_told_the_packages(self):
        run = self.bootstrap(0, path="/nonexistent")
        self.assertEqual(run.returncode, 2)
        self.assertIn("libfmt-dev", run.stderr)
        self.assertIn("SLALOM_NO_BOOTSTRAP=1", run.stderr)


if __name__ == "__main__":
    unittest.main()
