"""--junit: the file for build servers agrees with the exit code and the JSON."""

import unittest
import xml.etree.ElementTree as xml

from support import FIXED, LOST_UPDATE, Case


class Junit(Case):
    def search(self, file, code):
        found = self.json(code, "explore", file, "--junit", "results.xml")
        root = xml.parse(self.directory / "results.xml").getroot()
        self.assertEqual(root.tag, "testsuites")
        suite = root.find("testsuite")
        return found, suite, suite.findall("testcase")

    def test_findings_are_failures(self):
        found, suite, cases = self.search(LOST_UPDATE, code=1)
        titles = [finding["title"] for finding in found["findings"]]
        self.assertGreater(len(titles), 1)
        self.assertEqual([case.get("name") for case in cases], ["search", *titles])
        self.assertEqual(suite.get("failures"), str(len(titles)))
        for case, finding in zip(cases[1:], found["findings"]):
            failure = case.find("failure")
            self.assertEqual((failure.get("type"), failure.get("message")), (finding["kind"], finding["title"]))
            self.assertIn("Schedule", failure.text)

    def test_nothing_found_is_a_passed_search(self):
        _, suite, cases = self.search(FIXED, code=0)
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors")), ("1", "0", "0"))
        self.assertEqual(cases[0].get("name"), "search")
        self.assertIn("exhausted", suite.find("system-out").text)

    def test_a_file_that_cannot_be_written(self):
        done = self.expect(2, "explore", FIXED, "--junit", "no/such/folder/results.xml")
        self.assertIn("no/such/folder/results.xml", done.stderr)


if __name__ == "__main__":
    unittest.main()
