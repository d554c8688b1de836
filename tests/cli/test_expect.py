"""[expect] in a file: the report, the JSON, JUnit and, with --expect, the exit code say whether the findings are the expected
ones."""

import unittest
import xml.etree.ElementTree as xml

from support import FIXED, LOST_UPDATE, ROOT, Case

FAILURE = "assertion failed: final check: an update was lost"


def with_expect(file, expect):
    """Returns the program with another [expect]; without one if it is None."""
    program = (ROOT / file).read_text().split("[expect]")[0]
    return program if expect is None else f"{program}[expect]\n{expect}\n"


class Expect(Case):
    def search(self, code, file, expect, *arguments):
        """Returns the report on the expectation, and the number of failed JUnit cases. The exit code must be `code`."""
        name = self.write("program.toml", with_expect(file, expect))
        said = self.json(code, "explore", name, "--expect", "--junit", "results.xml", *arguments)["expected"]
        suite = xml.parse(self.directory / "results.xml").getroot().find("testsuite")
        self.assertEqual(said["met"], code == 0)
        self.assertEqual(suite.get("failures") != "0", code == 1)
        return said

    def test_the_bug_and_its_fixed_twin_are_as_their_files_say(self):
        found = self.expect(0, "explore", LOST_UPDATE, "--expect").stdout
        self.assertIn('\nas expected: found: "assertion", "data-race"\n', found)
        self.assertIn("\nas expected: no failure\n", self.expect(0, "explore", FIXED, "--expect").stdout)
        self.assertIn('\nas expected: found: "assertion"', self.expect(1, "explore", LOST_UPDATE).stdout)

    def test_the_twin_lacks_the_bug_and_the_bug_is_not_expected_of_it(self):
        said = self.search(1, FIXED, f'titles = ["{FAILURE}"]')
        self.assertEqual((said["found"], said["missing"], said["unexpected"]), ([], [FAILURE], []))
        said = self.search(1, LOST_UPDATE, "kinds = []")
        self.assertIn(FAILURE, said["unexpected"])
        name = self.write("program.toml", with_expect(FIXED, f'titles = ["{FAILURE}"]'))
        self.assertIn(f'not as expected: not found: "{FAILURE}"', self.expect(0, "explore", name).stdout)

    def test_one_of_several_titles_is_enough_but_nothing_else_may_be_found(self):
        only = ("--detectors", "failure")
        said = self.search(0, LOST_UPDATE, f'titles = ["{FAILURE}", "another"]', *only)
        self.assertEqual((said["found"], said["missing"], said["unexpected"]), ([FAILURE], ["another"], []))
        said = self.search(1, LOST_UPDATE, 'titles = ["another"]', *only)
        self.assertEqual((said["missing"], said["unexpected"]), (["another"], [FAILURE]))

    def test_a_race_does_not_stand_for_the_failure_beside_it(self):
        races = ("--detectors", "race")
        self.search(0, LOST_UPDATE, 'kinds = ["data-race"]', *races)
        self.search(1, LOST_UPDATE, 'kinds = ["data-race", "assertion"]', *races)

    def test_a_file_must_have_it(self):
        name = self.write("program.toml", with_expect(FIXED, None))
        self.assertIn("[expect]", self.expect(2, "explore", name, "--expect").stderr)
        self.assertNotIn("expected", self.json(0, "explore", name))


if __name__ == "__main__":
    unittest.main()
