"""slalom cc and slalom c++: slalom run sees the memory accesses of programs that they build."""

import subprocess
import unittest

from support import ProgramTest, two_threads

RACE = two_threads("static int counter;", "++counter;", "return 0;")


class Compilers(ProgramTest):
    def test_a_race_is_found_in_what_they_build(self):
        for verb, name in (("cc", "race.c"), ("c++", "race.cc")):
            (self.folder / name).write_text(RACE)
            self.slalom(verb, "-O1", "-pthread", name, "-o", verb + "-race", codes=(0,))
            found = self.run_json(self.folder / (verb + "-race"), "--out", "", "--schedules", 20)
            self.assertEqual({finding["kind"] for finding in found["findings"]}, {"data-race"})
            self.assertIn(f"{name}:{RACE.splitlines().index('  ++counter;') + 1}", found["findings"][0]["title"])
            subprocess.run(["gcc" if verb == "cc" else "g++", "-g", "-O1", "-pthread", name, "-o", "without"],
                           cwd=self.folder, check=True)
            self.assertEqual(self.run_json(self.folder / "without", "--out", "", "--schedules", 20)["findings"], [])

    def test_the_compiler_has_the_last_word(self):
        (self.folder / "wrong.c").write_text("int main(void) { return missing; }\n")
        failed = self.slalom("cc", "wrong.c", "-o", "wrong", codes=(1,))
        self.assertIn("missing", failed.stderr)


if __name__ == "__main__":
    unittest.main()
