"""SLALOM_LOG: debug logs of slalom's folders."""

import re
import unittest

from support import LOST_UPDATE, Case

# A control sequence of terminals, as it may stand in a target's text.
ESCAPE = "\\u001b[2J"


class Log(Case):
    def logged(self, levels, *arguments, code=1, **variables):
        """Returns the lines on standard error."""
        return self.expect(code, *arguments, SLALOM_LOG=levels, **variables).stderr.splitlines()

    def test_off_is_silent_and_logs_change_no_result(self):
        silent = self.expect(1, "explore", LOST_UPDATE, "--out", "a")
        for levels in ("", "off", "explore=off"):
            self.assertEqual(self.logged(levels, "explore", LOST_UPDATE, "--out", "b"), silent.stderr.splitlines())
        loud = self.expect(1, "explore", LOST_UPDATE, "--json", SLALOM_LOG="trace", SLALOM_LOG_FILE="log")
        plain = self.expect(1, "explore", LOST_UPDATE, "--json")
        strip = lambda text: re.sub(r'"[a-z_]*seconds[a-z_]*": [^,\n]*', "", text)
        self.assertEqual(strip(loud.stdout), strip(plain.stdout))
        self.assertEqual(loud.stderr, plain.stderr)
        self.assertIn("[explore] execution 0: ", (self.directory / "log").read_text())

    def test_one_folder_only(self):
        lines = self.logged("explore=debug", "explore", LOST_UPDATE)
        self.assertTrue(lines)
        self.assertEqual([line for line in lines if not line.startswith("[explore] ")], [])
        all_lines = self.logged("debug", "explore", LOST_UPDATE)
        self.assertLessEqual({"[explore]", "[campaign]", "[finding]"}, {line.split()[0] for line in all_lines})

    def test_each_execution_is_logged_once_in_order_for_any_number_of_workers(self):
        arguments = ["explore", LOST_UPDATE, "--no-shrink"]
        one = self.logged("explore=debug", *arguments, "--workers", "1")
        numbers = [int(found[1]) for line in one if (found := re.match(r"\[explore\] execution (\d+): .* choice points", line))]
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertGreater(len(numbers), 1)
        self.assertEqual(self.logged("explore=debug", *arguments, "--workers", "3"), one)

    def test_wrong_values_list_the_folders(self):
        for levels in ("explorer=debug", "explore=loud", "yes"):
            errors = "\n".join(self.logged(levels, "explore", LOST_UPDATE, code=2))
            self.assertIn(f'"{levels}"', errors)
            self.assertIn("Folders: campaign explore finding kernel_store process vm", errors)
        errors = self.logged("debug", "explore", LOST_UPDATE, code=2, SLALOM_LOG_FILE="/dev/null/log")
        self.assertIn("/dev/null/log", errors[0])

    def test_text_of_targets_sends_no_escapes(self):
        self.write("evil.toml", f"""name = "evil{ESCAPE}"
[shared]
x = {{ init = 0 }}
[[thread]]
name = "t"
copies = 2
code = "x = x + 1; note \\"{ESCAPE}\\""
[final]
check = "x == 2"
message = "lost{ESCAPE}"
""")
        self.expect(1, "explore", "evil.toml", SLALOM_LOG="trace", SLALOM_LOG_FILE="log")
        text = (self.directory / "log").read_text(encoding="utf-8")
        self.assertIn("lost\ufffd[2J", text)
        self.assertEqual([c for c in text if ord(c) < 0x20 and c != "\n"], [])

    def test_programs_do_not_inherit_the_log(self):
        self.expect(0, "run", "--schedules", "2", "--", "/bin/sh", "-c", "test -z \"$SLALOM_LOG\" && ! ls -l /proc/$$/fd | grep -q /log$",
                    SLALOM_LOG="trace", SLALOM_LOG_FILE="log")
        self.assertIn("[process] launched /", (self.directory / "log").read_text())


if __name__ == "__main__":
    unittest.main()
