"""scripts/survey sorts what was found by the judgements that are written down, and says what is new."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def finding(title, severity="race", occurrences=3):
    return {"title": title, "severity": severity, "occurrences": occurrences}


class Survey(unittest.TestCase):
    def survey(self, results):
        """Its output for results that are there already; pairs that are not named found nothing."""
        pairs = [path.stem for path in (ROOT / "examples/kernel/pairs").glob("*.toml")]
        self.assertGreaterEqual(len(pairs), 20)
        with tempfile.TemporaryDirectory() as folder:
            for pair in pairs:
                found = results.get(pair, (200, []))
                (Path(folder) / f"debian-6.1.{pair}.json").write_text(
                    json.dumps({"executions": found[0], "truncated": found[2] if len(found) > 2 else 0, "findings": found[1]}))
            done = subprocess.run([sys.executable, ROOT / "scripts/survey", "--keep", folder, "debian:6.1"], capture_output=True,
                                  text=True, check=False, env={**os.environ, "SLALOM": "/bin/false"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return len(pairs), done.stdout

    def test_known_and_new(self):
        pairs, text = self.survey({
            "rename-rename": (200, [finding('assertion failed: rename("/a", "/b") of forth gives -22', "failure", 9),
                                    finding("data race: __lookup_mnt / attach_recursive_mnt"),
                                    finding("data race: brand_new / brand_new")]),
            "flock": (195, [], 5),
            "truncate-read": (17, [finding("assertion failed: something else", "failure", 1)]),
        })
        self.assertIn(f"{(pairs - 2) * 200 + 17 + 195:,} on 6.1", text)
        self.assertIn("out of time: `truncate-read` on 6.1 (17).", text)
        self.assertIn("limit of instructions: 5 of `flock` on 6.1.", text)
        self.assertIn("| The mount table | by design | 1 | 6.1 |", text)
        self.assertIn("9 on 6.1 | by design: both look up", text)
        self.assertIn("| something else | `truncate-read` | 1 on 6.1 | not judged yet |", text)
        self.assertIn("2 distinct pairs of functions, in 1 groups, and 1 not judged yet", text)
        new = text.partition("### Not judged yet")[2]
        self.assertIn("`brand_new / brand_new` | rename-rename | 6.1 |", new)
        self.assertNotIn("__lookup_mnt", new)

    def test_nothing(self):
        _, text = self.survey({})
        self.assertIn("0 distinct pairs of functions", text)
        self.assertNotIn("Not judged", text)


if __name__ == "__main__":
    unittest.main()
