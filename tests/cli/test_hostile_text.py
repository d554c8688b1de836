"""Text of a target, a capsule or a file never reaches a terminal as control sequences."""

import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as xml

from support import ROOT, Case

FORGE = os.path.abspath(os.environ.get("FORGE", ROOT / "build/tests/cli/forge"))

# Colours, the terminal's title, C1's CSI as UTF-8 and as one byte, cursor movement, erasure, DEL, and bidi overrides.
HOSTILE = b"A\x1b[7mB\x1b]0;title\x07C\xc2\x9b2JD\x9bE\rF\bG\x7fH\xe2\x80\xaeI\xe2\x81\xa6J\xd8\x9cK\xe2\x80\xa8L"
CONTROLS = {*range(0x00, 0x0A), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)}


class HostileText(Case):
    def setUp(self):
        super().setUp()
        (self.directory / "text").write_bytes(HOSTILE)

    def forge(self, *arguments):
        subprocess.run([FORGE, *arguments], cwd=self.directory, check=True)

    def shown(self, *arguments, code=None, colours=False):
        """Returns the command's output, which must be valid UTF-8 without control characters other than those of slalom's own
        colours."""
        if colours:
            session = self.terminal(*arguments)
            status = session.wait()
            text = session.text.replace("\r\n", "\n").replace("\r\x1b[K", "")
            for number in (0, 1, 2, *range(31, 37)):  # the hostile text contains none of these
                text = text.replace(f"\x1b[{number}m", "")
        else:
            done = subprocess.run([os.environ.get("SLALOM", ROOT / "build/slalom"), *map(str, arguments)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False, timeout=60)
            status, text = done.returncode, (done.stdout + done.stderr).decode("utf-8")
        if code is not None:
            self.assertEqual(status, code, text)
        found = sorted({hex(ord(c)) for c in text if ord(c) in CONTROLS})
        self.assertEqual(found, [], f"{arguments}: {text!r}")
        return text

    def capsule(self, name="evil.slalom", kind="toy", target="toy", content=None):
        path = ROOT / "examples/toy/lost-update.toml" if content is None else self.directory / self.write("content", content)
        self.forge("capsule", name, kind, target, path, "text")
        return name

    def test_capsules(self):
        self.capsule()
        for options in ([], ["--json"], ["--trace"], ["--full"]):
            self.assertIn("B", self.shown("replay", "evil.slalom", *options, code=0))
        self.shown("replay", "evil.slalom", code=0, colours=True)
        hostile = HOSTILE.decode("utf-8", "replace")
        self.shown("replay", self.capsule("kind.slalom", kind=hostile), code=2)
        self.shown("replay", self.capsule("name.slalom", target=hostile), code=0)
        self.shown("replay", self.capsule("toy.slalom", content=hostile), code=2)
        self.shown("replay", self.capsule("check.slalom", kind="check", content=hostile), code=2)
        self.shown("replay", self.capsule("kernel.slalom", kind="kernel", content=f"{hostile}\n\nkernel = '{hostile}'"), code=2)

    def test_a_capsule_that_is_refused_shows_what_it_would_run(self):
        program = r'{"path": "/bin/\u001b[2J", "arguments": ["a\u009b", "\u202eb"], "check": "rm\u0007", "scratch": "/\u001b"}'
        text = self.shown("replay", self.capsule(kind="program", content=program), code=2)
        self.assertIn("rm\ufffd", text)
        self.shown("replay", "evil.slalom", "--trust", code=2)

    def test_stores(self):
        folder = self.directory / "store" / os.fsdecode(HOSTILE)
        folder.mkdir(parents=True)
        self.capsule("store.slalom")
        shutil.copy(self.directory / "store.slalom", folder / "capsule.slalom")
        (self.directory / "store" / "damaged\x1b[2J").mkdir()
        (self.directory / "store" / "damaged\x1b[2J" / "capsule.slalom").write_bytes(HOSTILE)
        for options in ([], ["--json"]):
            self.shown("findings", "store", *options, code=1)
        self.shown("findings", "store", colours=True)

    def test_traces(self):
        self.forge("trace", "evil.trace", "text")
        self.assertIn("B", self.shown("trace", "evil.trace", code=0))
        self.capsule()
        self.shown("trace", "evil.trace", "--capsule", "evil.slalom", code=0)

    def test_toy_programs(self):
        words = HOSTILE.decode("utf-8", "replace").replace("\r", "").replace("\n", "")
        quoted = "".join(f"\\u{ord(c):04x}" if ord(c) in CONTROLS else c for c in words)
        self.write("evil.toml", f"""name = "{quoted}"
[shared]
x = {{ init = 0 }}
[[thread]]
name = "t"
copies = 2
code = "x = x + 1; note \\"{quoted}\\""
[final]
check = "x == 2"
message = "{quoted}"
""")
        text = self.shown("explore", "evil.toml", "--junit", "evil.xml", "--out", "kept")
        self.assertIn("B", text)
        self.shown("explore", "evil.toml", "--json")
        self.shown("explore", "evil.toml", "--full", colours=True)
        self.assertIsNotNone(xml.parse(self.directory / "evil.xml"))
        for kept in [self.directory / "evil.xml", *self.directory.glob("kept/*/report.txt"), *self.directory.glob("kept/*/finding.json")]:
            written = kept.read_text(encoding="utf-8")
            self.assertEqual([c for c in written if ord(c) in CONTROLS], [], kept)
        for broken in (f"name = \"{words}", f"x\u001b = {words}", words, f"[[thread]]\ncode = '{words}'\nname='t'"):
            self.write("broken.toml", broken)
            self.shown("explore", "broken.toml", code=2)

    def test_words_of_the_command_line(self):
        for arguments in (["replay", HOSTILE], ["explore", HOSTILE], [HOSTILE], ["trace", HOSTILE], ["explore", b"--" + HOSTILE]):
            self.shown(*[os.fsdecode(word) for word in arguments], code=2)


if __name__ == "__main__":
    unittest.main()
