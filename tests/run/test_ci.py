"""slalom run in a program's own tests: under make check and ctest, in parallel, without a terminal."""

import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as xml

from support import LOST_UPDATE, SLALOM, ProgramTest

FIXED = LOST_UPDATE.replace("set(get() + 1);", "pthread_mutex_lock(&lock); ++counter; pthread_mutex_unlock(&lock);").replace(
    "static int get", "__attribute__((unused)) static int get").replace("static void set", "__attribute__((unused)) static void set")

# As with automake: a given command runs each test, a log receives its output, and its exit status decides.
MAKEFILE = """
TESTS = broken fixed
check: $(TESTS:=.log)
\t@! grep -L '^status 0$$' $(TESTS:=.log) | grep .
%.log: %
\t@$(SLALOM) run --schedules 200 --junit $*.xml -- ./$* > $@ 2>&1; echo "status $$?" >> $@
"""
CTEST = """
foreach(name broken fixed)
  add_test(${name} %s run --schedules 200 --junit ${name}.xml -- ./${name})
endforeach()
"""


class Ci(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.build(cls, LOST_UPDATE, "broken")
        cls.build(cls, FIXED, "fixed")

    def command(self, *command):
        return subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100,
                              start_new_session=True, env=dict(os.environ, SLALOM=SLALOM, TERM="dumb"))

    def check_results(self):
        for name, failures in (("broken", "1"), ("fixed", "0")):
            suite = xml.parse(self.folder / f"{name}.xml").getroot().find("testsuite")
            self.assertEqual(suite.get("failures"), failures, name)
            (self.folder / f"{name}.xml").unlink()

    @unittest.skipUnless(shutil.which("make"), "make is not installed")
    def test_make_check(self):
        (self.folder / "Makefile").write_text(MAKEFILE)
        done = self.command("make", "-j2", "check")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout.split()[:1], ["broken.log"])
        log = (self.folder / "broken.log").read_text()
        self.assertIn("counter == 2", log)
        self.assertTrue(log.endswith("status 1\n"), log)
        self.assertNotIn("\x1b", log, "colours are for terminals")
        self.assertTrue((self.folder / "fixed.log").read_text().endswith("status 0\n"))
        self.check_results()

    def test_ctest(self):
        (self.folder / "CTestTestfile.cmake").write_text(CTEST % SLALOM)
        done = self.command("ctest", "-j2", "--output-on-failure")
        self.assertEqual(done.returncode, 8, done.stdout + done.stderr)
        self.assertIn("counter == 2", done.stdout)
        self.assertIn("1 tests failed out of 2", done.stdout)
        self.check_results()

    def test_exit_codes(self):
        for name, code in (("broken", 1), ("fixed", 0), ("missing", 2)):
            done = self.command(SLALOM, "run", "--schedules", "200", "--out", "", "--", f"./{name}")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
