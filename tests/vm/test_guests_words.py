"""The output of guests, and what a kernel's capsule makes the host do."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from guest import DEADLINE, KERNEL, SLALOM, main

FLOOD = """
#include <stdlib.h>
#include <string.h>
#include "slalom.h"
int main(int count, char** arguments) {
  static char text[4097];
  memset(text, 'x', 4096);
  slalom_begin(atol(arguments[1]));
  if (CONDITION)
    for (int i = 0; i < 300000; ++i) slalom_note(text);
  slalom_end(atol(arguments[1]));
  return 0;
}
"""
STEERS = """
#include <stdlib.h>
#include "slalom.h"
int main(int count, char** arguments) {
  slalom_begin(atol(arguments[1]));
  slalom_note("A\\033[31mB\\xc2\\x9b" "2JC\\x9b" "D\\rE\\bF\\xe2\\x80\\xaeG");
  slalom_fail("H\\033]0;title\\007I\\xc2\\x9bJ");
  slalom_end(atol(arguments[1]));
  return 0;
}
"""
TEST = '[[flow]]\nname = "speaker"\nsource = "speaker.c"\n[[flow]]\ncalls = "getppid()"\n'
PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, done.returncode, done.stdout or done.stderr, sep="\\n")
"""


class Words(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "test.toml").write_text(TEST)
        self.config = self.folder / "config"
        self.config.mkdir()

    def run_command(self, *command, **changes):
        return subprocess.run([*map(str, command)], cwd=self.folder, capture_output=True, text=True, timeout=DEADLINE, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "XDG_CONFIG_HOME": str(self.config), **changes})

    def peak(self, *arguments):
        """The megabytes that slalom needed, its exit code and its output."""
        done = self.run_command("python3", "-c", PEAK, SLALOM, *arguments)
        megabytes, code, text = done.stdout.split("\n", 2)
        return int(megabytes), int(code), text

    def test_notes_are_a_limit_of_the_execution(self):
        (self.folder / "speaker.c").write_text(FLOOD.replace("CONDITION", "1"))
        megabytes, code, text = self.peak("explore", "test.toml", "--schedules", 4, "--workers", 1)
        self.assertEqual(code, 2, text)
        self.assertIn("test.toml: an execution may note 16,777,216 bytes (slalom_note), and this one notes more", text)
        self.assertLess(megabytes, 700)
        # If only some executions flood, they are cut off, but count as no livelock.
        (self.folder / "speaker.c").write_text(FLOOD.replace("CONDITION", "slalom_choose(2)"))
        megabytes, code, text = self.peak("explore", "test.toml", "--json", "--strategy", "dfs", "--schedules", 20, "--workers", 1)
        self.assertEqual(code, 0, text)
        found = json.loads(text)
        self.assertGreater(found["truncated"], 0)
        self.assertGreater(found["executions"], 0)
        self.assertFalse(found["exhausted"])
        self.assertEqual(found["findings"], [])
        self.assertLess(megabytes, 700)

    def test_a_guest_cannot_steer_the_terminal(self):
        (self.folder / "speaker.c").write_text(STEERS)
        (self.folder / "stderr").symlink_to("/proc/self/fd/2")
        done = self.run_command(SLALOM, "explore", "test.toml", "--schedules", 2, "--full", "--junit", "stderr")
        self.assertEqual(done.returncode, 1, done.stderr)
        [capsule] = self.folder.glob("slalom-findings/*/capsule.slalom")
        shown = [done, self.run_command(SLALOM, "replay", capsule, "--full"), self.run_command(SLALOM, "replay", capsule, "--json"),
                 self.run_command(SLALOM, "replay", capsule, "--save-trace", "saved"), self.run_command(SLALOM, "trace", "saved")]
        shown.append(self.run_command(SLALOM, "trace", "saved", "--kernel", KERNEL))
        for one in shown:
            text = one.stdout + one.stderr
            # JSON has the finding, not the note.
            self.assertIn("H\\u001b]0;title" if "--json" in one.args else "31mB", text)
            self.assertEqual([c for c in text if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c == "\u202e"], [], one.args)

    def test_a_kernels_capsule_runs_a_compiler_and_gdb_by_consent_only(self):
        (self.folder / "speaker.c").write_text(STEERS)
        self.run_command(SLALOM, "explore", "test.toml", "--schedules", 1)
        [capsule] = self.folder.glob("slalom-findings/*/capsule.slalom")
        others = {"XDG_CONFIG_HOME": str(self.folder)}
        self.assertEqual(self.run_command(SLALOM, "replay", capsule).returncode, 1)
        for options, says in (([], f"  C compiler   on {self.folder}/speaker.c\n"), (["--gdb"], "  debugger     gdb, on the files that the kernel test names\n")):
            done = self.run_command(SLALOM, "replay", capsule, *options, **others)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        self.assertEqual(self.run_command(SLALOM, "replay", capsule, "--trust", **others).returncode, 1)
        # With lists of calls only, the virtual machine does everything.
        (self.folder / "test.toml").write_text('check = "false"\n[[flow]]\ncalls = "getpid()"\n[[flow]]\ncalls = "getppid()"\n')
        self.run_command(SLALOM, "explore", "test.toml", "--schedules", 1, "--out", "calls")
        [capsule] = self.folder.glob("calls/*/capsule.slalom")
        self.assertEqual(self.run_command(SLALOM, "replay", capsule, **others).returncode, 1)
        self.assertEqual(self.run_command(SLALOM, "replay", capsule, "--gdb", **others).returncode, 2)

    def test_a_module_that_is_built_in_is_no_error(self):
        cache = pathlib.Path(os.environ.get("SLALOM_CACHE", pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "slalom"))
        built_in = (cache / "kernels" / KERNEL / "modules/modules.builtin").read_text().split()[0]
        name = pathlib.Path(built_in).stem
        (self.folder / "test.toml").write_text(f'modules = ["{name}"]\n' + TEST.replace('source = "speaker.c"', 'calls = "getpid()"'))
        done = self.run_command(SLALOM, "explore", "test.toml", "--schedules", 1)
        self.assertEqual(done.returncode, 0, done.stderr)  # there is nothing to load

    def test_the_console_of_boot_is_text_in_a_pipe(self):
        done = self.run_command(SLALOM, "boot", "--run", r"printf 'A\033[31mB\302\2332JC\233D\bE gr\303\266n\n'")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("A\ufffd[31mB\ufffd\ufffd2JC\ufffdD\ufffdE grön\n", done.stdout)


if __name__ == "__main__":
    main()
