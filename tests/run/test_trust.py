"""A capsule can name any program: slalom runs it only for the user who made the capsule, or who gives --trust."""

import os
import subprocess
import unittest
from pathlib import Path

from support import LOST_UPDATE, SLALOM, ProgramTest


class Trust(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mine, cls.theirs = cls.folder / "mine", cls.folder / "theirs"
        for folder in (cls.mine, cls.theirs):
            folder.mkdir()
        cls.check = f"touch {cls.folder}/checked; exit 0"
        cls.program = cls.build(cls, LOST_UPDATE)
        found = cls.command(cls.mine, "run", "--json", "--out", "found", "--check", cls.check, "--", cls.program, "an argument")
        assert found.returncode == 1 and found.stderr == "", found.stderr
        [cls.capsule] = [str(path.relative_to(cls.folder)) for path in cls.folder.glob("found/*/capsule.slalom")]
        (cls.folder / "checked").unlink()

    @classmethod
    def command(cls, config, *arguments, **changes):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(config), **changes}
        for name in [name for name, value in environment.items() if value is None]:
            del environment[name]
        return subprocess.run([SLALOM, *map(str, arguments)], cwd=cls.folder, env=environment, capture_output=True, text=True, timeout=100, check=False,
                              stdin=subprocess.DEVNULL)

    def is_refused(self, done, why="nothing shows that you made it on this machine. It would run:"):
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(f"this capsule is not run without your consent, since {why}", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse((self.folder / "checked").exists())
        return done.stderr

    def test_what_i_made_replays(self):
        self.assertEqual(oct((self.mine / "slalom/capsule.key").stat().st_mode & 0o777), "0o600")
        done = self.command(self.mine, "replay", self.capsule)
        self.assertIn("the same again", done.stdout)
        folder = str(Path(self.capsule).parent)
        self.assertIn("the same again", self.command(self.mine, "replay", folder).stdout)

    def test_what_others_made_is_shown_and_refused(self):
        text = self.is_refused(self.command(self.theirs, "replay", self.capsule, "--times", 3))
        for line in (f"  program      {self.program}\n", f"  called as    {self.program}\n", "  arguments    'an argument'\n",
                     f"  folder       {self.folder}\n", "  environment  that of this command\n",
                     f"  check        /bin/sh -c '{self.check}', after each execution\n",
                     f"  If you trust it: {SLALOM} replay --trust {self.capsule} --times 3\n"):
            self.assertIn(line, text)
        self.assertFalse((self.theirs / "slalom").exists())  # reading a capsule creates no key

    def test_the_command_that_is_named_runs_it(self):
        text = self.is_refused(self.command(self.theirs, "replay", "--times", 2, self.capsule))
        again = subprocess.run(text.rsplit("If you trust it: ", 1)[1], shell=True, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn("the same in 2 of 2", again.stdout, again.stderr)

    def test_every_other_door(self):
        self.command(self.mine, "replay", self.capsule, "--save-trace", "saved.trace")
        for options in (["--gdb"], ["--gdb-start"], ["--trace"], ["--json"], ["--program", self.program], ["--original"]):
            self.is_refused(self.command(self.theirs, "replay", self.capsule, *options))
        self.is_refused(self.command(self.theirs, "trace", "saved.trace", "--capsule", self.capsule))
        self.assertEqual(self.command(self.theirs, "trace", "--trust", "saved.trace", "--capsule", self.capsule).returncode, 0)
        # These commands run nothing.
        self.assertEqual(self.command(self.theirs, "findings", "found").returncode, 1)
        self.assertEqual(self.command(self.theirs, "trace", "saved.trace").returncode, 0)

    def test_another_key_and_a_key_of_no_use(self):
        other = self.folder / "other"
        other.mkdir()
        self.command(other, "run", "--out", "elsewhere", "--", self.program)
        self.assertTrue((other / "slalom/capsule.key").exists())
        self.is_refused(self.command(other, "replay", self.capsule))
        (other / "slalom/capsule.key").chmod(0o644)
        self.is_refused(self.command(other, "replay", self.capsule), "nothing shows that you made it on this machine (the signing key")
        note = self.command(other, "run", "--out", "elsewhere", "--", self.program)
        self.assertEqual(note.returncode, 1)
        self.assertIn("the capsules are not signed, so slalom replay asks for --trust: the signing key", note.stderr)

    def test_bugs_are_found_without_a_place_for_a_key(self):
        for changes, why in (({"XDG_CONFIG_HOME": None, "HOME": None}, "set HOME"), ({"XDG_CONFIG_HOME": str(self.program)}, f"{self.program}/slalom")):
            done = self.command("", "run", "--out", "unsigned", "--", self.program, **changes)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("Replayed 10/10", done.stdout)
            self.assertIn("the capsules are not signed, so slalom replay asks for --trust", done.stderr)
            self.assertIn(why, done.stderr)
            [capsule] = self.folder.glob("unsigned/*/capsule.slalom")
            self.is_refused(self.command("", "replay", capsule, **changes), "nothing shows that you made it on this machine")
            self.assertIn("the same again", self.command("", "replay", "--trust", capsule, **changes).stdout)

    def test_an_unsigned_capsule_in_a_store_is_never_signed(self):
        unsigned = {"XDG_CONFIG_HOME": None, "HOME": None}
        self.command("", "run", "--out", "shared", "--", self.program, **unsigned)
        [capsule] = self.folder.glob("shared/*/capsule.slalom")
        self.is_refused(self.command(self.mine, "replay", capsule))
        self.command(self.mine, "run", "--out", "shared", "--", self.program)
        self.assertIn("the same again", self.command(self.mine, "replay", capsule).stdout)


if __name__ == "__main__":
    unittest.main()
