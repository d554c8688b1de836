"""Values that are random in each process, or that slalom itself leaves in memory, are the same in all processes. So a program
that reads memory that it does not own (any more) finds the same values, and the consequences replay."""

import ctypes
import json
import struct
import subprocess
import unittest

from support import LOST_UPDATE, SLALOM, ProgramTest


def shows(body, before=""):
    """A program that fails with the number that `body` returns."""
    return f"""#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
{before}
static uint64_t __attribute__((noinline)) look(void) {{
  {body}
}}
int main(void) {{
  char text[40];
  snprintf(text, sizeof text, "saw %lx", look());
  __assert_fail(text, __FILE__, __LINE__, "main");
}}
"""


# All words that returned functions left on the stack.
LEFT_ON_STACK = """volatile uint64_t words[2000];
  uint64_t sum = 0;
  for (int i = 0; i < 2000; ++i) sum = sum * 31 + words[i];
  return sum;"""
CANARY = shows(LEFT_ON_STACK).replace("int main(void) {", """
static int __attribute__((noinline, optimize("stack-protector-all"))) leave(void) {
  volatile char text[40] = "guarded";
  return text[0];
}
int main(void) {
  leave();""")
BEFORE_MAIN = shows("return found;", f"""static uint64_t found;
static uint64_t __attribute__((noinline)) look_early(void) {{
  {LEFT_ON_STACK}
}}
__attribute__((constructor)) static void begin(void) {{
  found = look_early();
}}""")
MANGLED = shows("""static jmp_buf buffer;
  setjmp(buffer);
  uint64_t pointer;
  memcpy(&pointer, (char *)buffer + 48, sizeof pointer);  // the stack pointer
  return pointer;""")
KERNELS = shows("""const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
  uint64_t sum = 0;
  for (int i = 0; i < 16; ++i) sum = sum * 31 + bytes[i];
  return sum;""")
FREED = shows("""volatile uint64_t *words = malloc(40);
  words[1] = 0;
  free((void *)words);
  return words[1];""")
# A library frees it before any of slalom's code runs.
FREED_EARLY = shows("return freed[1];", "extern uint64_t *freed;")
FREES_EARLY = """#include <stdint.h>
#include <stdlib.h>
uint64_t *freed;
__attribute__((constructor)) static void begin(void) {
  freed = malloc(200);
  free(freed);
}
"""
# Each block has its own page, which is unmapped when the block is freed.
OWN_MALLOC = """#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
void *malloc(size_t size) {
  char *pages = mmap(0, size + 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(size_t *)pages = size;
  return pages + 16;
}
void free(void *memory) {
  char *pages = (char *)memory - 16;
  if (memory) munmap(pages, *(size_t *)pages + 16);
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *memory, size_t size) {
  void *moved = malloc(size);
  size_t old = memory ? *(size_t *)((char *)memory - 16) : 0;
  if (memory) memcpy(moved, memory, old < size ? old : size);
  free(memory);
  return moved;
}
"""
# A pool on the stack of main() that no longer exists while its worker still uses it. The worker reads whatever main() has on its
# stack by then.
DEAD_POOL = """#include <condition_variable>
#include <mutex>
#include <thread>
class Pool {
 public:
  Pool() : worker_([this] { work(); }) {}
  ~Pool() {
    {
      std::lock_guard guard(lock_);
      stop_ = true;
      wake_.notify_all();
    }
    worker_.detach();
  }

 private:
  void work() {
    std::unique_lock guard(lock_);
    while (!stop_) wake_.wait(guard);
    guard.unlock();
    ended_.notify_all();
  }
  std::mutex lock_;
  std::condition_variable wake_, ended_;
  bool stop_ = false;
  std::thread worker_;
};
int main() {
  { Pool pool; }
  std::thread other([] {});
  other.join();
}
"""


def forbid_ptrace():
    """Makes ptrace() fail with EPERM in this process and its children."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    ptrace, fail, allow = 101, 0x00050001, 0x7FFF0000
    code = b"".join(struct.pack("HBBI", *step) for step in
                    [(load, 0, 0, 0), (jump_if_equal, 0, 1, ptrace), (give, 0, 0, fail), (give, 0, 0, allow)])
    text = ctypes.create_string_buffer(code)
    filter_program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    for arguments in ((set_no_new_privileges, 1, 0, 0, 0), (set_seccomp, by_filter, filter_program, 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class SameProcess(ProgramTest):
    def titles(self, program, times=3, **keywords):
        """Returns the titles found in that many fresh processes."""
        titles = []
        for _ in range(times):
            done = subprocess.run([SLALOM, "run", "--json", "--no-shrink", "--schedules", "1", "--", program], cwd=self.folder,
                                  capture_output=True, text=True, timeout=100, **keywords)
            titles += [finding["title"] for finding in json.loads(done.stdout)["findings"]]
        self.assertEqual(len(titles), times, titles)
        return set(titles)

    def check_replays(self, program, *arguments, times=10):
        findings = self.run_json(program, *arguments)["findings"]
        self.assertTrue(findings)
        for finding in findings:
            self.assertEqual(finding["replayed"], "10/10", finding["title"])
            replay = self.slalom("replay", finding["capsule"], "--json", "--times", times, codes=[1])
            self.assertTrue(json.loads(replay.stdout)["same"], finding["title"])

    def check_same(self, text, name, flags=()):
        program = self.build(text, name, flags=flags)
        self.assertEqual(len(self.titles(program)), 1)
        self.check_replays(program)

    def test_canary_on_the_stack(self):
        self.check_same(CANARY, "canary")

    def test_stack_before_main(self):
        self.check_same(BEFORE_MAIN, "before_main")

    def test_mangled_pointer(self):
        self.check_same(MANGLED, "mangled")

    def test_bytes_of_the_kernel(self):
        self.check_same(KERNELS, "kernels")

    def test_freed_memory(self):
        self.check_same(FREED, "freed")

    def test_memory_that_was_freed_before(self):
        self.build(FREES_EARLY, "libfrees.so", flags=["-shared", "-fPIC"])
        self.check_same(FREED_EARLY, "freed_early", flags=["-Wl,--no-as-needed", self.folder / "libfrees.so"])

    def test_first_execution_and_the_next(self):
        program = self.build(shows(LEFT_ON_STACK), "left")
        findings = self.run_json(program, "--strategy", "random", "--schedules", 5, "--workers", 1, "--keep-going")["findings"]
        self.assertEqual([finding["occurrences"] for finding in findings], [5])

    def test_memory_of_a_function_that_has_returned(self):
        program = self.build(DEAD_POOL, "dead_pool", suffix=".cc")
        self.check_replays(program, "--seed", 2, "--keep-going", times=300)

    def test_descriptors(self):
        # Only the first three descriptors, whatever slalom was started with.
        program = self.build(shows("""uint64_t open = 0;
  for (int i = 3; i < 64; ++i) open |= (uint64_t)(fcntl(i, F_GETFD) != -1) << i;
  return open;"""), "descriptors")
        with open("/dev/null", encoding="utf-8") as one, open("/dev/null", encoding="utf-8") as other:
            titles = self.titles(program, 1, pass_fds=(one.fileno(), other.fileno()))
        self.assertIn("saw 0", titles.pop())

    def test_nobody_traces_it(self):
        program = self.build(shows("""char line[100];
  unsigned long tracer = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) sscanf(line, "TracerPid: %lu", &tracer);
  return tracer;"""), "tracer")
        self.assertIn("saw 0", self.titles(program, 1).pop())

    def test_where_tracing_is_forbidden(self):
        mangled = self.build(MANGLED, "mangled_freely")
        self.assertGreater(len(self.titles(mangled, preexec_fn=forbid_ptrace)), 1, "tracing was forbidden")
        program = self.build(LOST_UPDATE, "lost")
        done = subprocess.run([SLALOM, "run", "--json", "--", program], cwd=self.folder, preexec_fn=forbid_ptrace,
                              capture_output=True, text=True, timeout=100)
        finding = json.loads(done.stdout)["findings"][0]
        self.assertIn("counter == 2", finding["title"])
        self.assertEqual(finding["replayed"], "10/10")

    def test_other_mallocs(self):
        inside = self.build(OWN_MALLOC + LOST_UPDATE, "own_malloc")
        self.build(OWN_MALLOC, "libown.so", flags=["-shared", "-fPIC"])
        beside = self.build(LOST_UPDATE, "other_malloc", flags=["-Wl,--no-as-needed", self.folder / "libown.so"])
        for program in (inside, beside):
            self.assertIn("counter == 2", self.run_json(program)["findings"][0]["title"])


if __name__ == "__main__":
    unittest.main()
