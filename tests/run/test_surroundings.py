"""A capsule on another machine: a program that was moved still runs, and a replay that does not show the bug lists the
differences from the machine where it was found."""

import json
import os
import shutil
import subprocess
import unittest

from support import LOST_UPDATE, SLALOM, ProgramTest, line_of

# Fails if the library, the variable and the folder are as they were when the bug was found.
DEPENDS = r"""
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int broken(void);
int main(void) {
  assert(!(broken() && getenv("MODE") && strcmp(getenv("MODE"), "secret") == 0 && access("here", F_OK) == 0));
}
"""
LIBRARY = "int broken(void) { return %d; }\n"


class Surroundings(ProgramTest):
    def library(self, broken):
        source = self.folder / "library.c"
        source.write_text(LIBRARY % broken)
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", self.folder / "libdepends.so"], check=True)

    def command(self, *arguments, code, folder=None, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("MODE", "OTHER")} | variables
        done = subprocess.run([SLALOM, *map(str, arguments)], cwd=folder or self.folder, env=environment, capture_output=True, text=True,
                              timeout=100)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_what_differs_is_named(self):
        self.library(1)
        (self.folder / "here").touch()
        program = self.build(DEPENDS, flags=["-Wl,--no-as-needed", self.folder / "libdepends.so"])
        self.command("run", "--", program, code=1, MODE="secret")
        [capsule] = self.folder.glob("slalom-findings/*/capsule.slalom")

        # Harmless differences are not reported.
        same = self.command("replay", capsule, code=1, MODE="secret", OTHER="1")
        self.assertNotIn("differs", same.stdout)

        other = self.command("replay", capsule, code=0, MODE="wrong", OTHER="1").stdout
        self.assertIn("differs: the environment variable MODE has another value", other)
        self.assertIn("differs: the environment variable OTHER was not set then", other)
        self.assertEqual(other.count("differs:"), 2, other)
        unset = json.loads(self.command("replay", "--json", capsule, code=0).stdout)
        self.assertEqual(unset["differences"], ["the environment variable MODE was set then"])

        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        moved = self.command("replay", "--json", capsule, code=0, folder=elsewhere, MODE="secret")
        self.assertEqual(json.loads(moved.stdout)["differences"],
                         [f'access("here") in main at prog.c:{line_of(DEPENDS, "access(")} (main) fails with ENOENT, which it did not then',
                          f"it was found in the folder {self.folder}, this is {elsewhere}"])

        self.library(0)
        changed = self.command("replay", "--json", capsule, code=0, MODE="secret")
        self.assertEqual(json.loads(changed.stdout)["differences"], [f"the library {self.folder}/libdepends.so has other contents"])

    def test_what_libraries_are_told(self):
        told = self.build('#include <stdlib.h>\n#include <string.h>\n'
                          'int main(int count, char **names) { const char *is = getenv(names[1]); return !is || strcmp(is, names[2]) != 0; }',
                          "told")
        for name, value in (("QT_NO_CPU_FEATURE", "rdrnd"), ("GOMP_SPINCOUNT", "0"), ("OMP_NUM_THREADS", "4")):
            self.command("run", "--out", "", "--", told, name, value, code=0)
            self.command("run", "--out", "", "--", told, name, "7", code=0, **{name: "7"})

    def test_a_moved_program(self):
        program = self.build(LOST_UPDATE, name="moves")
        self.slalom("run", "--out", "moved", "--", program, codes=(1,))
        [capsule] = self.folder.glob("moved/*/capsule.slalom")
        folder = self.folder / "a-folder-with-a-much-longer-name"
        folder.mkdir()
        there = shutil.move(program, folder / "renamed")
        self.assertIn("--program", self.slalom("replay", capsule, codes=(2,)).stderr)
        self.assertIn("the same in 5 of 5", self.slalom("replay", capsule, "--times", 5, "--program", there, codes=(1,)).stdout)
        # Another program is not accepted in its place.
        other = self.build(LOST_UPDATE.replace("counter == 2", "counter > 1"), name="other")
        self.assertIn("is not the program that this was found in", self.slalom("replay", capsule, "--program", other, codes=(2,)).stderr)


if __name__ == "__main__":
    unittest.main()
