"""Parts of a program that are one step to the search, and parts outside which it does not switch: the numbers of interleavings
follow from the program."""

import subprocess
import unittest

from support import ProgramTest

# Each of two threads adds three times; an addition is two steps under the lock.
ADDITIONS = """
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static __attribute__((noinline)) int get(void) {
  pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  return value;
}
static __attribute__((noinline)) void set(int value) {
  pthread_mutex_lock(&lock);
  counter = value;
  pthread_mutex_unlock(&lock);
}
static INLINE void add(void) { set(get() + 1); }
static void *work(void *unused) {
  for (int i = 0; i < 3; ++i) add();
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return counter != 6;
}
"""

OUT_OF_LINE = "-DINLINE=__attribute__((noinline))"
INLINED = "-DINLINE=inline __attribute__((always_inline))"

ACCOUNT = """
#include <cassert>
#include <mutex>
#include <thread>
template <typename T>
class Account {
 public:
  T get() { std::lock_guard hold(lock_); return value_; }
  void set(T value) { std::lock_guard hold(lock_); value_ = value; }
  void deposit(T amount) { set(get() + amount); }
 private:
  std::mutex lock_;
  T value_{};
};
Account<int> account;
int main() {
  std::thread other([] { account.deposit(1); });
  account.deposit(1);
  other.join();
  assert(account.get() == 2);
}
"""

LIBRARY = """
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
int library_add(void) {
  pthread_mutex_lock(&lock);
  int value = counter;
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&lock);
  counter = value + 1;
  pthread_mutex_unlock(&lock);
  return counter;
}
"""
USER = """
#include <pthread.h>
int library_add(void);
static void *work(void *unused) {
  library_add();
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  return library_add() != 3;
}
"""


class Scope(ProgramTest):
    def classes(self, program, *options):
        """Returns the number of interleavings, by both strategies that try all of them."""
        counts = []
        for strategy in ("dfs", "dpor"):
            result = self.run_json(program, "--strategy", strategy, *options)
            self.assertEqual(result["findings"], [], options)
            self.assert_finished(result)
            counts.append(result["classes"])
        self.assertEqual(counts[0], counts[1])
        return counts[0]

    def finds(self, program, *options):
        return len(self.run_json(program, "--strategy", "dfs", *options)["findings"]) > 0

    def test_atomic_functions_are_steps(self):
        # Three steps for each of two threads: 6! / (3! 3!). With calls, with tail calls, and inlined.
        for flags in ([OUT_OF_LINE, "-O0"], [OUT_OF_LINE, "-O2"], [INLINED, "-O2"]):
            program = self.build(ADDITIONS, flags=flags)
            self.assertTrue(self.finds(program), flags)
            self.assertEqual(self.classes(program, "--atomic", "function:add"), 20, flags)

    def test_a_whole_thread_can_be_one_step(self):
        program = self.build(ADDITIONS, flags=[OUT_OF_LINE])
        self.assertEqual(self.classes(program, "--atomic", "function:work"), 2)

    def test_smaller_steps_than_the_bug_needs(self):
        program = self.build(ADDITIONS, flags=[OUT_OF_LINE])
        self.assertTrue(self.finds(program, "--atomic", "function:get", "--atomic", "function:set"))

    def test_switches_only_inside(self):
        program = self.build(ACCOUNT, suffix=".cc")
        self.assertTrue(self.finds(program, "--scope", "function:Account::deposit"))
        self.assertTrue(self.finds(program, "--scope", "function:Account<int>::dep*"))
        self.assertTrue(self.finds(program, "--scope", "module:prog"))
        # The other thread can run before main() reads, but not between its read and its write.
        self.assertEqual(self.classes(program, "--scope", "module:prog", "--atomic", "function:Account*"), 2)
        self.assertEqual(self.classes(program, "--scope", "module:libc.so"), 1)

    def test_modules(self):
        source = self.folder / "library.c"
        source.write_text(LIBRARY)
        library = self.folder / "liblibrary.so.1"
        subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", source, "-o", library], check=True)
        program = self.build(USER, flags=["-Wl,--no-as-needed", library, f"-Wl,-rpath,{self.folder}"])
        self.assertTrue(self.finds(program))
        self.assertTrue(self.finds(program, "--scope", "module:liblibrary"))
        self.assertFalse(self.finds(program, "--atomic", "module:liblibrary.so"))
        self.assertFalse(self.finds(program, "--scope", "module:prog", "--atomic", "function:library_add"))

    def test_findings_replay_within_their_scope(self):
        program = self.build(ACCOUNT, suffix=".cc")
        result = self.run_json(program, "--scope", "function:Account::deposit")
        replayed = self.slalom("replay", result["findings"][0]["capsule"], "--times", "5")
        self.assertIn("the same in 5 of 5", replayed.stdout)

    def test_says_what_was_covered(self):
        program = self.build(ADDITIONS, flags=[OUT_OF_LINE])
        text = self.slalom("run", "--strategy", "dpor", "--atomic", "function:add", "--", program).stdout
        self.assertIn("of those in everything but function:add and what they call", " ".join(text.split()))
        seen = self.build(ADDITIONS, "seen", flags=[OUT_OF_LINE, "-fsanitize=thread"])
        text = self.slalom("run", "--strategy", "dpor:coarse", "--atomic", "function:add", "--", seen).stdout
        self.assertIn("exhausted within scope:", text)

    def test_unknown_parts(self):
        program = self.build(ADDITIONS, flags=[OUT_OF_LINE])
        for option, words in ((("--scope", "function:nobody"), "no function of the program"),
                              (("--atomic", "module:nothing.so"), "these are: "),
                              (("--scope", "add"), "write module:FILE, function:NAME")):
            done = self.slalom("run", *option, "--", program, codes=(2,))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
