"""slalom run with files that it cannot run, and with programs that misbehave: a clear message, no hang, and no process left
running."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SLALOM = os.path.abspath(os.environ["SLALOM"])

# Each is a body of main(), with a second thread where that matters.
PROLOGUE = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *unused) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return unused;
}
static volatile int number;
static void *spin(void *unused) {
  while (number == 0) {
  }
  return unused;
}
static void compute(void) {  // for a third of a second or so; the clocks are slalom's
  for (unsigned long long start = __builtin_ia32_rdtsc(); __builtin_ia32_rdtsc() - start < 900000000;) {
  }
}
static int deeper(int n) { volatile char room[4096]; room[0] = (char)n; return n == number ? room[0] : deeper(n + 1) + room[0]; }
static volatile sig_atomic_t handled;
static void handle(int s) { handled = s; }
int main(int argc, char **argv) {
  (void)argc, (void)argv, (void)deeper, (void)handle, (void)spin, (void)compute;
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
"""
EPILOGUE = """
  pthread_join(thread, NULL);
  return 0;
}
"""


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def tearDown(self):
        left = subprocess.run(["pgrep", "-f", str(self.folder) + "/prog"], capture_output=True, text=True).stdout.split()
        self.assertEqual(left, [], "processes are left")

    def build(self, body, *flags):
        source = self.folder / "prog.c"
        source.write_text(PROLOGUE + body + EPILOGUE)
        program = self.folder / "prog"
        subprocess.run(["gcc", "-O0", "-g", "-D_GNU_SOURCE", "-Wno-infinite-recursion", "-pthread", *flags, source, "-o", program],
                       check=True)
        return program

    def slalom(self, *arguments, schedules=20):
        done = subprocess.run([SLALOM, "run", "--out", "", "--schedules", str(schedules), *map(str, arguments)],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def refused(self, command, *words, code=2, options=()):
        result, _, errors = self.slalom(*options, "--", *command)
        self.assertEqual(result, code, errors)
        for word in words:
            self.assertIn(word, errors)

    def clean(self, program, *arguments):
        result, output, errors = self.slalom(*arguments, "--", program)
        self.assertEqual(result, 0, output + errors)
        self.assertIn("nothing found", output)
        return output

    def fails(self, program, title, *arguments):
        result, output, errors = self.slalom(*arguments, "--", program)
        self.assertEqual(result, 1, output + errors)
        self.assertIn(title, output)

    def test_missing_file(self):
        self.refused(["./not-there"], "there is no file ./not-there")
        self.refused(["not-there-either"], "there is no program not-there-either")

    def test_no_command(self):
        result, _, errors = self.slalom()
        self.assertEqual(result, 2)
        self.assertIn("COMMAND", errors)

    def test_options_after_the_program_are_remarked_on(self):
        program = self.build("")
        meant, _, errors = self.slalom("--", program, "--seed=7", "--own-option", "seed")
        self.assertEqual(meant, 0, errors)
        self.assertEqual(re.findall(r"slalom: (\S+) goes to", errors), ["--seed"])
        self.assertNotIn("goes to", self.slalom("--seed", "7", "--", program, "--own-option")[2])

    def test_folder(self):
        self.refused([self.folder], "is a folder")

    def test_not_executable(self):
        (self.folder / "text").write_text("hello")
        self.refused([self.folder / "text"], "chmod +x")

    def test_script(self):
        script = self.folder / "script"
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        self.refused([script], "is a script")

    def test_no_program_at_all(self):
        for content in (b"", b"MZ", b"\x7fELF"):
            file = self.folder / "file"
            file.write_bytes(content)
            file.chmod(0o755)
            self.refused([file], "not an ELF file")

    def test_32_bit(self):
        file = self.folder / "old"
        file.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x02\x00\x03\x00" + bytes(100))
        file.chmod(0o755)
        self.refused([file], "64-bit")

    def test_static(self):
        self.refused([self.build("", "-static")], "linked statically")

    def test_damaged_headers(self):
        image = bytearray(self.build("").read_bytes())
        image[32:40] = (1 << 60).to_bytes(8, "little")
        file = self.folder / "damaged"
        file.write_bytes(image)
        file.chmod(0o755)
        self.refused([file], "damaged")

    def test_endless_loop(self):
        self.refused([self.build("while (number == 0) {}")], "without an operation", options=["--patience", "1"])

    def test_long_computations_between_operations(self):
        # Each single pause is shorter than the patience, but all together are longer, and slalom is not asked in between.
        program = self.build("for (int i = 0; i < 8; ++i) { compute(); worker(NULL); }")
        result, output, errors = self.slalom("--patience", 1, "--strategy", "random", "--", program, schedules=1)
        self.assertEqual(result, 0, output + errors)

    def test_endless_loop_in_a_thread_is_named(self):
        program = self.build("pthread_create(&thread, NULL, spin, NULL);")
        self.refused([program], "spin#2 ran for 1 seconds without an operation", options=["--patience", "1", "--strategy", "random"])

    def test_forks(self):
        output = self.clean(self.build("pid_t child = fork(); if (child == 0) _exit(3); waitpid(child, NULL, 0);"))
        self.assertIn("warning: the program forks", output)

    def test_leaves_children(self):
        self.clean(self.build("if (fork() == 0) { sleep(1000); _exit(0); }"))

    def test_leaves_other_programs(self):
        sleeper = self.folder / "prog-that-sleeps"  # tearDown() detects processes left over
        shutil.copy("/bin/sleep", sleeper)
        self.clean(self.build(f'if (system("{sleeper} 1000 &") != 0) return 1;'))
        daemon = f'if (fork() == 0) {{ setsid(); if (fork() == 0) execl("{sleeper}", "{sleeper}", "1000", (char *)NULL); _exit(0); }}'
        self.clean(self.build(daemon + "wait(NULL);"))
        self.fails(self.build(daemon + "wait(NULL); return 3;"), "exits with status 3")
        self.refused([self.build(daemon + "while (number == 0) {}")], "without an operation", options=["--patience", "1"])

    def test_runs_another_program(self):
        self.clean(self.build("if (system(\"exit 0\") != 0) return 1;"))

    def test_execs(self):
        self.clean(self.build("execl(\"/bin/true\", \"true\", (char *)NULL);"))

    def test_closes_all_descriptors(self):
        self.clean(self.build("for (int i = 0; i < 1024; ++i) close(i);"))

    def test_prints_much(self):
        body = "static char page[1 << 20]; memset(page, 'x', sizeof page);" \
               "for (int i = 0; i < 2000; ++i) { fwrite(page, sizeof page, 1, stdout); fwrite(page, sizeof page, 1, stderr); }"
        result, output, errors = self.slalom("--", self.build(body), schedules=3)
        self.assertEqual(result, 0, output[-500:] + errors[-500:])
        self.assertLess(len(output) + len(errors), 10_000)

    def test_own_signal_handlers(self):
        self.clean(self.build("signal(SIGSEGV, handle); signal(SIGUSR1, handle); raise(SIGUSR1);"
                              "if (handled != SIGUSR1) return 1; kill(getpid(), SIGUSR1);"))

    def test_stack_overflow(self):
        self.fails(self.build("number = -1; return deeper(0);"), "stack overflow")

    def test_stack_overflow_in_a_thread(self):
        body = "number = -1; pthread_t other; pthread_create(&other, NULL, (void *(*)(void *))deeper, NULL);" \
               "pthread_join(other, NULL);"
        self.fails(self.build(body), "stack overflow")

    def test_kills_itself(self):
        self.fails(self.build("kill(getpid(), SIGKILL);"), "killed by signal KILL")
        self.fails(self.build("raise(SIGSTOP);"), "stopped by a signal")

    def test_exit_status(self):
        program = self.build("return 3;")
        self.fails(program, "the program exits with status 3")
        self.clean(program, "--any-status")

    def test_dies_before_main(self):
        body = "return 0; } __attribute__((constructor)) static int early(void) { pthread_t thread = 0; _exit(5);"
        self.refused([self.build(body)], "ended before it reached main()")

    def test_waits_for_input(self):
        self.clean(self.build("char byte; if (read(0, &byte, 1) != 0) return 1;"))

    def test_started_without_standard_descriptors(self):
        program = self.build("return 3;")
        for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]:
            done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", SLALOM, "run", "--out", "", "--schedules", "20",
                                   "--", program], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, closed + done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
