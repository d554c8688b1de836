"""The output of a program, and the verdict of a user's command, decide whether an execution is right."""

import unittest

from support import ProgramTest, two_threads

COUNT = """static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;"""
# The program itself does not notice the error: it exits with 0.
WRONG = two_threads(
    COUNT, """pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  counter = value + 1;
  pthread_mutex_unlock(&lock);""", 'printf("counted\\n%d\\n", counter);')
RIGHT = two_threads(COUNT, "pthread_mutex_lock(&lock); ++counter; pthread_mutex_unlock(&lock);",
                    'printf("counted\\n%d\\n", counter);')
WRITES = two_threads(
    COUNT, """pthread_mutex_lock(&lock);
  int first = counter++ == 0;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  FILE *file = fopen("order", "a");
  fprintf(file, "%d\\n", first);
  fclose(file);
  pthread_mutex_unlock(&lock);""", "")
LONG = two_threads("", "", "for (int i = 0; i < 9000000; ++i) puts(\"ten bytes\");")


class Judge(ProgramTest):
    def expected(self, text, name="expected.txt"):
        (self.folder / name).write_bytes(text)
        return self.folder / name

    def titles(self, result):
        return [finding["title"] for finding in result["findings"]]

    def test_expected_output(self):
        right = self.expected(b"counted\n2\n")
        self.assertEqual(self.run_json(self.build(WRONG))["findings"], [])
        result = self.run_json(self.build(WRONG), "--expect-output", right)
        self.assertEqual(self.titles(result), [f"assertion failed: the output is not that of {right}"])
        self.assertEqual(result["findings"][0]["detail"], 'Line 2 is "1", and should be "2".')
        self.assertEqual(result["findings"][0]["replayed"], "10/10")
        result = self.run_json(self.build(RIGHT), "--expect-output", right, "--strategy", "dfs")
        self.assertEqual(result["findings"], [])
        self.assert_finished(result)

    def test_a_capsule_has_what_was_expected(self):
        right = self.expected(b"counted\n2\n")
        capsule = self.run_json(self.build(WRONG), "--expect-output", right)["findings"][0]["capsule"]
        right.unlink()
        self.assertIn("the same in 3 of 3", self.slalom("replay", capsule, "--times", "3").stdout)

    def test_differences(self):
        program = self.build(RIGHT)
        for text, detail in ((b"counted\n2", "Line 2 ends with a line break."),
                             (b"counted\n", 'It goes on with line 2, "2", where it should end.'),
                             (b"", 'It goes on with line 1, "counted", where it should end.'),
                             (b"counted\n2\n3\n", 'It ends before line 3, which should be "3".'),
                             (b"counted\n22\n", 'Line 2 is "2", and should be "22".')):
            result = self.run_json(program, "--expect-output", self.expected(text), "--schedules", "1", "--strategy", "random")
            self.assertEqual(result["findings"][0]["detail"], detail, text)

    def test_what_cannot_be_expected(self):
        for text in (b"\xff\xfe", b"x" * (1 << 21)):
            done = self.slalom("run", "--expect-output", self.expected(text), "--", self.build(RIGHT), codes=(2,))
            self.assertIn("--check 'cmp - ", done.stderr)

    def test_a_command_that_checks(self):
        command = "tail -n 1 | grep -qx 2 || { echo a wrong sum; exit 3; }"
        result = self.run_json(self.build(WRONG), "--check", command)
        self.assertEqual(self.titles(result), [f"assertion failed: the check exits with 3: {command}"])
        self.assertEqual(result["findings"][0]["detail"], "a wrong sum")
        capsule = result["findings"][0]["capsule"]
        self.assertIn("the same in 3 of 3", self.slalom("replay", capsule, "--times", "3").stdout)
        result = self.run_json(self.build(RIGHT), "--check", command, "--strategy", "dfs")
        self.assertEqual(result["findings"], [])
        self.assert_finished(result)

    def test_it_runs_where_the_program_ran(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        program = self.build(WRITES)
        options = ("--scratch", self.folder / "empty", "--strategy", "dfs")
        self.assertEqual(self.run_json(program, *options, "--check", "test $(wc -l < order) = 2")["findings"], [])
        late = self.run_json(program, *options, "--check", 'test "$(tail -n 1 order)" = 0')
        self.assertEqual(len(late["findings"]), 1)

    def test_every_exit_status_but_0_is_a_failure(self):
        for status in (0, 1, 2, 255):
            program = self.build(f"int main(void) {{ return {status}; }}")
            titles = [f"assertion failed at prog.c:1 (main): the program exits with status {status}"] if status else []
            self.assertEqual(self.titles(self.run_json(program, "--schedules", "1")), titles)
            self.assertEqual(self.titles(self.run_json(program, "--schedules", "1", "--any-status")), [])

    def test_it_is_told_the_exit_status(self):
        program = self.build("int main(void) { return 7; }")
        for status, count in ((7, 0), (8, 1)):
            result = self.run_json(program, "--any-status", "--schedules", "1", "--check", f"test $SLALOM_STATUS = {status}")
            self.assertEqual(len(result["findings"]), count)

    def test_a_command_that_cannot_check(self):
        program = self.build(RIGHT)
        for command, words in (("no-such-command", "cannot be run"), ("sleep 1000", "did not end within 1 seconds")):
            done = self.slalom("run", "--schedules", "1", "--patience", "1", "--check", command, "--", program, codes=(2,))
            self.assertIn(words, done.stderr)
            self.assertIn(command, done.stderr)

    def test_too_much_output(self):
        done = self.slalom("run", "--schedules", "1", "--check", "true", "--", self.build(LONG), codes=(2,))
        self.assertIn("64 MB", done.stderr)


if __name__ == "__main__":
    unittest.main()
