"""scripts/build-modules, with headers made here whose "compiler" copies: what is built, when, and what is said if not.

And the examples themselves: every one has its twin and its two tests, which differ in nothing but the fix."""

import os
import shutil
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/kernel-modules"
RELEASE = "6.1.0-1-test"

# Answers as `slalom kernel get NAME --headers --json` does.
SLALOM = """#!/bin/sh
[ "$*" = "kernel get $3 --headers --json" ] || exit 2
[ "$3" != debian:none ] || { echo "debian:none cannot be fetched" >&2; exit 2; }
printf '{\\n  "name": "%s",\\n  "release": "@RELEASE@",\\n  "headers": "@HEADERS@"\\n}\\n' "$3"
"""

# Each module is what the preprocessor makes of its source.
MAKEFILE = """
include $(M)/Kbuild
modules:
	@echo called >>@HEADERS@/calls
	@for o in $(obj-m); do cpp -P -o $(M)/$${o%.o}.ko $(M)/$${o%.o}.c || exit 1; done
"""


class BuildModules(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name) / "tree"
        self.headers = Path(directory.name) / "headers"
        self.cache = Path(directory.name) / "cache"
        self.built = self.cache / "modules" / RELEASE
        (self.root / "scripts").mkdir(parents=True)
        self.headers.mkdir()
        shutil.copy(ROOT / "scripts/build-modules", self.root / "scripts")
        self.slalom = self.write(self.root / "slalom", SLALOM)
        self.slalom.chmod(0o755)
        self.write(self.headers / "Makefile", MAKEFILE)
        self.write(self.example("one"), "#ifdef FIXED\nmended\n#else\nbroken\n#endif\n")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@RELEASE@", RELEASE).replace("@HEADERS@", str(self.headers)), encoding="utf-8")
        return path

    def example(self, name):
        return self.root / f"examples/kernel-modules/{name}/{name}.c"

    def build(self, code=0, *kernels, slalom=None):
        environment = {**os.environ, "SLALOM": str(slalom or self.slalom), "SLALOM_CACHE": str(self.cache)}
        done = subprocess.run([self.root / "scripts/build-modules", *kernels], capture_output=True, text=True,
                              env=environment, cwd="/", check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def calls(self):
        return len((self.headers / "calls").read_text(encoding="utf-8").splitlines())

    def modules(self):
        return {path.name: path.read_text(encoding="utf-8").strip() for path in self.built.glob("*.ko")}

    def test_every_source_gives_a_module_and_its_twin(self):
        self.write(self.example("two"), "same\n")
        self.assertEqual(self.build(0, "debian:6.1").stdout, f"{self.built}\n")
        self.assertEqual(self.modules(), {"one.ko": "broken", "one_fixed.ko": "mended", "two.ko": "same", "two_fixed.ko": "same"})
        self.assertEqual(sorted(p.name for p in self.built.iterdir() if p.suffix != ".ko"), [".lock", ".state"])

    def test_both_kernels_unless_told(self):
        self.assertEqual(self.build().stdout, f"{self.built}\n" * 2)

    def test_only_changes_are_built(self):
        for _ in range(2):
            self.build(0, "debian:6.1")
        self.assertEqual(self.calls(), 1)
        self.write(self.example("one"), "changed\n")
        self.build(0, "debian:6.1")
        self.assertEqual((self.calls(), self.modules()["one.ko"]), (2, "changed"))

    def test_what_has_no_source_any_more_goes(self):
        self.write(self.example("two"), "same\n")
        self.build(0, "debian:6.1")
        shutil.rmtree(self.example("two").parent)
        self.build(0, "debian:6.1")
        self.assertEqual(sorted(self.modules()), ["one.ko", "one_fixed.ko"])

    def test_a_module_that_does_not_build(self):
        self.build(0, "debian:6.1")
        self.write(self.example("one"), "#error no such thing\n")
        done = self.build(2, "debian:6.1")
        self.assertIn("no such thing", done.stderr)
        self.assertIn(f"do not build with {self.headers}", done.stderr)
        self.write(self.example("one"), "good\n")
        self.build(0, "debian:6.1")
        self.assertEqual(self.modules()["one.ko"], "good")

    def test_no_headers(self):
        self.assertIn("debian:none cannot be fetched", self.build(2, "debian:none").stderr)
        self.assertIn("./run build", self.build(2, slalom="/nowhere/slalom").stderr)


class Examples(unittest.TestCase):
    def names(self):
        names = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
        self.assertGreaterEqual(len(names), 8)
        return names

    def load(self, name, file):
        return tomllib.loads((EXAMPLES / name / file).read_text(encoding="utf-8"))

    def test_each_has_a_source_with_a_fix(self):
        for name in self.names():
            self.assertEqual({path.name for path in (EXAMPLES / name).iterdir()}, {f"{name}.c", "test.toml", "fixed.toml"})
            source = (EXAMPLES / name / f"{name}.c").read_text(encoding="utf-8")
            self.assertRegex(source, r"#ifn?def FIXED\n")
            self.assertIn(f'.name = "{name}"', source)  # its device is /dev/NAME

    def test_twins_are_tested_alike(self):
        for name in self.names():
            test, fixed = self.load(name, "test.toml"), self.load(name, "fixed.toml")
            self.assertEqual(test["modules"], [f"{name}.ko"])
            self.assertEqual(fixed["modules"], [f"{name}_fixed.ko"])
            self.assertTrue(test["expect"]["kinds"])
            self.assertEqual(fixed["expect"], {"kinds": []})
            self.assertEqual((test["kernel"], test["flow"]), (fixed["kernel"], fixed["flow"]))


if __name__ == "__main__":
    unittest.main()
