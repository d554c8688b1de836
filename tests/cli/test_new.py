"""slalom new: the templates that it writes."""

import tomllib
import unittest

from support import Case


class New(Case):
    def test_a_kernel_test_is_complete_and_named(self):
        told = self.expect(0, "new", "kernel-test", "mine")
        self.assertEqual(told.stdout, "wrote mine.toml\n  next: slalom explore mine.toml\n")
        test = tomllib.loads((self.directory / "mine.toml").read_text(encoding="utf-8"))
        self.assertEqual(test["name"], "mine")
        self.assertEqual([flow["name"] for flow in test["flow"]], ["writer", "reader"])

    def test_nothing_is_overwritten(self):
        (self.directory / "mine.toml").write_text("precious", encoding="utf-8")
        told = self.expect(2, "new", "kernel-test", "mine.toml")
        self.assertIn("mine.toml is there already", told.stderr)
        self.assertEqual((self.directory / "mine.toml").read_text(encoding="utf-8"), "precious")

    def test_wrong_names_are_refused(self):
        self.assertIn("is kernel-test or fs-test, not \"kernel\"", self.expect(2, "new", "kernel", "x").stderr)
        for name in ("a\"b", "\u00e9t\u00e9", "a\\b"):
            self.assertIn("is no name for a test", self.expect(2, "new", "kernel-test", name).stderr)
        self.assertIn("--kernel \"a\"b\" is no kernel", self.expect(2, "new", "fs-test", "disk", "--kernel", "a\"b").stderr)
        self.expect(2, "new", "kernel-test")


if __name__ == "__main__":
    unittest.main()
