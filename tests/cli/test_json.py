"""Compares the JSON of every verb with docs/formats.md in both directions: all printed fields are documented, and all documented
fields are printed."""

import json
import re
import subprocess
import unittest

from support import FIXED, LOST_UPDATE, ROOT, SLALOM, STEPS, Case

TYPES = {"text": str, "integer": int, "number": (int, float), "boolean": bool}


class Field:
    def __init__(self):
        self.type = None  # of a leaf
        self.optional = False
        self.parts = {}

    def at(self, path):
        field = self
        for part in re.findall(r"\[\]|[^.\[\]]+", path):
            field = field.parts.setdefault(part, Field())
        return field

    def may_lack(self):
        """Returns whether the field is optional, or an object whose fields all are."""
        return self.optional or (bool(self.parts) and all(part.may_lack() for part in self.parts.values()))

    def leaves(self, path=""):
        if self.type:
            yield path
        for name, part in self.parts.items():
            yield from part.leaves(path + name if name == "[]" else f"{path}.{name}" if path else name)


def promised(section, finding=None):
    """Returns the fields in the table of this section of docs/formats.md."""
    text = (ROOT / "docs/formats.md").read_text(encoding="utf-8")
    body = re.search(rf"^### {re.escape(section)}\n(.*?)(?=^##|\Z)", text, re.M | re.S).group(1)
    root = Field()
    for path, kind in re.findall(r"^\| `([^`]+)` \| (\w[\w ]*) \|", body, re.M):
        field = root.at(path)
        if kind == "finding":
            field.parts = finding.parts
            continue
        field.optional = kind.startswith("optional ")
        field.type = kind.removeprefix("optional ")
        assert field.type in TYPES, f"{section}: {path} has the unknown type {kind}"
    return root


FINDING = promised("finding.json")
# Its findings name a variable of a stack, a block, and a block that was allocated before main().
NAMES = """
#include <pthread.h>
#include <stdlib.h>
struct node { long value; } *early, *node;
static long *shared;
__attribute__((constructor)) static void make(void) { early = malloc(sizeof *early); }
static void *add(void *unused) {
  ++*shared;
  ++node->value;
  ++early->value;
  return unused;
}
int main(void) {
  long local = 0;
  node = calloc(1, sizeof *node);
  shared = &local;
  pthread_t thread;
  pthread_create(&thread, NULL, add, NULL);
  ++local;
  ++node->value;
  free(early);
  pthread_join(thread, NULL);
}
"""


class Promises(Case):
    def compare(self, value, field, path, seen):
        if field.type:
            wanted = TYPES[field.type]
            self.assertIsInstance(value, wanted, path)
            self.assertFalse(isinstance(value, bool) and wanted is not bool, f"{path} is no {field.type}")
            seen.add(path)
        elif "[]" in field.parts:
            self.assertIsInstance(value, list, path)
            for item in value:
                self.compare(item, field.parts["[]"], path + "[]", seen)
        else:
            self.assertIsInstance(value, dict, path)
            for name, part in field.parts.items():
                self.assertTrue(name in value or part.may_lack() or name == "*", f"{path}: {name} is promised")
            for name, item in value.items():
                known = name if name in field.parts else "*"
                self.assertIn(known, field.parts, f"{path}: {name} is not in docs/formats.md")
                self.compare(item, field.parts[known], f"{path}.{known}" if path else known, seen)

    def all_seen(self, field, values, but=()):
        seen = set()
        for value in values:
            self.compare(value, field, "", seen)
        self.assertEqual(set(field.leaves()) - seen, set(but), "promised in docs/formats.md but never printed")

    def searches(self):
        flaky = self.write("flaky.toml", FLAKY)
        missing = self.write("missing.c", '#include <assert.h>\n#include <unistd.h>\nint main(void) { assert(!access("none", F_OK)); }\n')
        subprocess.run(["gcc", missing, "-o", "missing"], cwd=self.directory, check=True)
        program = json.loads(self.expect(1, "run", "--json", "--", "./missing").stdout)  # a program whose calls can fail
        self.assertEqual(program.pop("uncontrolled"), [])
        self.assertIn("memory accesses", program.pop("not_seen"))
        source = self.write("names.c", NAMES)
        subprocess.run(["gcc", "-g", "-fsanitize=thread", source, "-o", "names"], cwd=self.directory, check=True)
        named = json.loads(self.expect(1, "run", "--json", "--keep-going", "--", "./names").stdout)
        self.assertEqual(named.pop("uncontrolled"), [])
        # A state of a few hundred bytes is saved before the search; then the disk is full, as far as this process knows.
        full = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh", SLALOM, "explore", self.write("steps.toml", STEPS), "--strategy", "dfs",
                "--schedules", "500", "--state", "state", "--out", "", "--json"]
        unsaved = subprocess.run(full, cwd=self.directory, capture_output=True, text=True, check=False)
        self.assertEqual(unsaved.returncode, 0, unsaved.stderr)
        return [
            program,
            named,
            json.loads(unsaved.stdout),
            self.json(1, "explore", LOST_UPDATE),
            self.json(1, "explore", "examples/toy/readers.toml", "--set", "n=3"),
            self.json(1, "explore", self.write("chosen.toml", CHOSEN + '[expect]\nkinds = ["deadlock"]\n')),
            self.json(0, "explore", self.write("steps.toml", STEPS), "--strategy", "dfs", "--schedules", 500),
            self.json(1, "explore", flaky, "--workers", 1, "--strategy", "dfs", "--run-twice", "--detectors", "failure"),
        ]

    def test_explore(self):
        self.all_seen(promised("slalom explore --json", FINDING), self.searches())

    def test_finding_files(self):
        self.searches()
        files = list(self.directory.glob("slalom-findings/*/finding.json"))
        found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        self.all_seen(FINDING, found)
        for file, finding in zip(files, found):
            self.assertEqual(finding["signature"], file.parent.name)
            self.assertTrue((file.parent / finding["capsule"]).is_file())

    def test_findings(self):
        self.searches()
        listed = self.json(1, "findings")
        # What only an execution tells.
        self.all_seen(FINDING, listed, [leaf for leaf in FINDING.leaves() if leaf.startswith("objects[]") or leaf.endswith(".place")])
        ranks = [["failure", "race", "suspicion"].index(finding["severity"]) for finding in listed]
        self.assertEqual(ranks, sorted(ranks))
        self.assertEqual(len(listed), len(list(self.directory.glob("slalom-findings/*/finding.json"))))
        (self.directory / "empty").mkdir()
        self.assertEqual(self.json(0, "findings", "empty"), [])

    def test_replay(self):
        replays = [self.json(f["title"].endswith("not the first") is False, "replay", f["capsule"])
                   for search in self.searches() for f in search["findings"]]
        # Differences of the surroundings are known only for programs.
        source = self.write("mood.c", '#include <assert.h>\n#include <stdlib.h>\nint main(void) { assert(!getenv("MOOD")); }\n')
        subprocess.run(["gcc", source, "-o", "mood"], cwd=self.directory, check=True)
        found = json.loads(self.expect(1, "run", "--json", "--", "./mood", MOOD="bad").stdout)
        replays.append(self.json(0, "replay", found["findings"][0]["capsule"]))
        self.assertEqual(len(replays[-1]["differences"]), 1)
        fields = promised("slalom replay --json")
        fields.parts.update(FINDING.parts)
        self.all_seen(fields, replays)
        self.assertEqual({r["same"] for r in replays}, {True, False})

    def test_doctor(self):
        sound = self.json(0, "doctor")
        self.assertTrue(sound["ok"])
        self.assertEqual({check["advice"] for check in sound["checks"]}, {""})
        sick = self.json(2, "doctor", cwd="/proc")  # no process can write there
        self.assertFalse(sick["ok"])
        self.assertEqual([check["check"] for check in sick["checks"] if not check["ok"]], ["findings can be written here"])
        self.assertTrue(all(check["ok"] == (check["advice"] == "") for check in sick["checks"]))
        self.all_seen(promised("slalom doctor --json"), [sound, sick])

    def test_doctor_examines_home_cache_key_gdb_and_kernels(self):
        def doctor(code, **changes):
            checks = self.json(code, "doctor", **{"HOME": str(self.directory), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", "SLALOM_CACHE": "", **changes})["checks"]
            return {check["check"]: check for check in checks}

        sound = doctor(0)
        self.assertEqual(sound["HOME"]["found"], str(self.directory))
        self.assertEqual(sound["cache"]["found"], f"{self.directory}/.cache/slalom")
        self.assertIn("none yet", sound["signing key"]["found"])
        self.assertEqual(sound["kernels"]["found"], "none (for kernel tests: slalom kernel get debian:6.1)")
        self.assertRegex(sound["gdb"]["found"], "/gdb$")
        self.assertIn("install the package gdb", doctor(0, PATH="/nowhere")["gdb"]["found"])
        homeless = doctor(2, HOME="")
        self.assertEqual([name for name, check in homeless.items() if not check["ok"]], ["HOME", "cache", "signing key"])
        for name in ("HOME", "cache", "signing key"):
            self.assertIn("set HOME", homeless[name]["advice"])
        self.assertIn("SLALOM_CACHE", doctor(2, SLALOM_CACHE=str(self.directory / "examples/toy/lost-update.toml/cache"))["cache"]["advice"])
        key = self.directory / ".config/slalom/capsule.key"
        key.parent.mkdir(parents=True)
        key.write_bytes(b"short")
        self.assertIn("other users", doctor(2)["signing key"]["advice"])
        key.chmod(0o600)
        self.assertIn(f"{key} is damaged", doctor(2)["signing key"]["advice"])
        kernel = self.directory / "cache/kernels/debian:6.1"
        kernel.mkdir(parents=True)
        (kernel / "kernel.txt").write_text("cut")
        key.write_bytes(b"k" * 32)
        damaged = doctor(2, SLALOM_CACHE=str(self.directory / "cache"))
        self.assertIn("run: slalom kernel get debian:6.1", damaged["kernel debian:6.1"]["advice"])

    def test_what_the_numbers_say(self):
        found, clean = self.json(1, "explore", LOST_UPDATE), self.json(0, "explore", FIXED)
        self.assertEqual((found["executions"], found["classes"], clean["executions"], clean["classes"]), (4, 4, 2, 2))
        self.assertEqual((found["exhausted"], found["end"], clean["findings"]), (True, "done", []))
        self.assertEqual([f["kind"] for f in found["findings"]], ["assertion", "data-race", "data-race"])
        self.assertEqual([f["replayed"] for f in found["findings"]], ["10/10"] * 3)
        limited = self.json(0, "explore", self.write("steps.toml", STEPS), "--strategy", "dfs", "--schedules", 500)
        self.assertEqual((limited["executions"], limited["end"], limited["exhausted"]), (500, "schedule limit", False))
        first = self.json(1, "explore", LOST_UPDATE, "--first", "--strategy", "random", "--workers", 1)
        self.assertEqual(first["end"], "first failure")
        none = self.json(1, "explore", LOST_UPDATE, "--out", "")
        self.assertEqual({f["capsule"] for f in none["findings"]}, {""})

    def test_leaks_that_are_asked_for_count(self):
        leaks = self.write("leak.toml", "name = 'leak'\n[[thread]]\nname = 't'\ncode = 'p = alloc(1)'\n")
        found = self.json(1, "explore", leaks, "--detectors", "leak")
        self.assertEqual([f["severity"] for f in found["findings"]], ["suspicion"])


# Fails with one of two values, so the finding holds a data choice.
CHOSEN = """
name = "chosen"
[[thread]]
name = "t"
code = "assert choose(2) == 0"
"""

# Fails from the second execution on: what slalom cannot control, a replay cannot show.
FLAKY = """
name = "flaky"
[shared]
runs = { init = 0, atomic = true, persistent = true }
[[thread]]
name = "t"
copies = 2
code = 'assert fetch_add(runs, 1) < 2 "not the first"'
"""


if __name__ == "__main__":
    unittest.main()
