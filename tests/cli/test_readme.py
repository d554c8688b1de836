"""README.md and docs/*.md show what slalom really prints.

Every ```console block is run: a line `$ command` and the output that follows it. The blocks of one page share a directory, in
which the examples are. Durations may differ, nothing else. To write the pages anew: tests/cli/test_readme.py --update
"""

import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support import DEADLINE, ROOT, SLALOM, Case, environment

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)
DURATION = re.compile(r"\b\d+(\.\d+)? (ns|µs|ms|s|min \d\d s)\b")


def steady(text):
    return DURATION.sub("<time>", text)


class Pages(Case):
    def really(self, block):
        """Returns the block with the current output of its commands."""
        text = ""
        for line in block.splitlines():
            if not line.startswith("$ "):
                continue
            done = subprocess.run(["sh", "-c", line[2:]], cwd=self.directory, stdin=subprocess.DEVNULL, text=True, timeout=DEADLINE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  env=environment(PATH=f"{Path(SLALOM).parent}:{environment()['PATH']}"))
            text += f"{line}\n{done.stdout}"
        return text

    def check(self, page, update):
        def shown(match):
            actual = self.really(match.group())
            return match.group() if steady(actual) == steady(match.group()) else actual

        old = page.read_text(encoding="utf-8")
        new = BLOCK.sub(shown, old)
        if update and new != old:
            page.write_text(new, encoding="utf-8")
        elif new != old:
            self.assertEqual(old, new, f"{page.name} is out of date: run {Path(__file__).name} --update, and read the difference")

    def test_pages(self):
        self.assertIn("$ slalom explore", "".join(BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))))
        for page in PAGES:
            with self.subTest(page=page.name):
                self.check(page, UPDATE)

    def test_only_durations_may_differ(self):
        for duration in ("12 ns", "254.5 µs", "8.0 ms", "3.2 s", "1 min 08 s"):
            self.assertEqual(steady(f"4 distinct interleavings, {duration}\n"), "4 distinct interleavings, <time>\n")
        self.assertEqual(steady("in 4 executions by dfs; 10 minutes"), "in 4 executions by dfs; 10 minutes")


class Demo(Case):
    def demo(self, command):
        scripts = self.directory / "scripts"  # it works in the folder above its own
        scripts.mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts/demo", scripts)
        return subprocess.run([scripts / "demo"], env=environment(SLALOM=command), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=DEADLINE, check=False)

    def test_it_shows_what_it_promises(self):
        shown = self.demo(SLALOM)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertEqual(shown.stdout.count("$ "), 4)
        for words in ("an update was lost", "the same in 1000 of 1000 replays", "exhausted: every order", "missed with probability"):
            self.assertIn(words, shown.stdout)
        self.assertNotIn("\x1b", shown.stdout)

    def test_it_fails_if_anything_went_otherwise(self):
        self.assertEqual(self.demo("/bin/true").returncode, 1)
        self.assertEqual(self.demo("/bin/none").returncode, 1)


UPDATE = "--update" in sys.argv
if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--update"])
