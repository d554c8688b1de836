"""Modules that a program loads after main() began: their functions, lines and variables have names, whatever addresses the
schedule gives them, and they can be parts of a scope."""

import re
import subprocess
import unittest

from support import ProgramTest, line_of

LOST_UPDATE = """
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static int get(void) {
  pthread_mutex_lock(&plugin_lock);
  int value = counter;
  pthread_mutex_unlock(&plugin_lock);
  return value;
}
static void set(int value) {
  pthread_mutex_lock(&plugin_lock);
  counter = value;
  pthread_mutex_unlock(&plugin_lock);
}
void *work(void *unused) {
  set(get() + 1);
  return unused;
}
void finish(void) { assert(counter == 2); }
"""
DEADLOCK = """
#include <pthread.h>
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static int turn;
static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second); /* crosswise */
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}
void *work(void *unused) {
  if (__atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST)) both(&left, &right);
  else both(&right, &left);
  return unused;
}
void finish(void) {}
"""
RACE = """
static int plain;
void *work(void *unused) {
  plain += 1; /* both threads */
  return unused;
}
void finish(void) {}
"""
# Code from the C++ library's headers does not count as the user's, also in a plugin.
HEADERS = """
#include <cassert>
#include <mutex>
static std::mutex plugin_lock;
static int counter;
extern "C" void *work(void *unused) {
  int value;
  {
    std::lock_guard<std::mutex> hold(plugin_lock); // first
    value = counter;
  }
  std::lock_guard<std::mutex> hold(plugin_lock); // second
  counter = value + 1;
  return unused;
}
extern "C" void finish() { assert(counter == 2); }
"""
# The plugin's constructor starts the threads before dlopen() has returned.
CONSTRUCTOR = LOST_UPDATE.replace("void *work", "static void *work") + """
static pthread_t threads[2];
__attribute__((constructor)) static void begin(void) {
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
  finish();
}
"""

# Found by the program's RUNPATH, so the loader must see the program as the caller.
HOST = """
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
int main(void) {
  void *plugin = dlopen("libplugin.so", RTLD_NOW);
  assert(plugin);
  void *(*work)(void *) = dlsym(plugin, "work");
  void (*finish)(void) = dlsym(plugin, "finish");
  if (!work) return 0;
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  finish();
}
"""

# Two plugins that differ only in their names and in empty lines at the beginning.
TWIN = """
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t lock_of_NAME = PTHREAD_MUTEX_INITIALIZER;
int seen_by_NAME;
void use_NAME(int fails) {
  pthread_mutex_lock(&lock_of_NAME);
  seen_by_NAME++;
  pthread_mutex_unlock(&lock_of_NAME);
  assert(!fails);
}
"""
# Loads plugins one after the other (a, b, then a again), which would lie at the same address if slalom did not prevent it. The
# last one fails.
ONE_AFTER_THE_OTHER = """
#include <dlfcn.h>
#include <pthread.h>
static void use(const char *file, const char *function, int fails) {
  void *plugin = dlopen(file, RTLD_NOW);
  ((void (*)(int))dlsym(plugin, function))(fails);
  dlclose(plugin);
}
static void *nothing(void *unused) { return unused; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, nothing, 0);
  use("./liba.so", "use_a", 0);
  use("./libb.so", "use_b", 0);
  use("./liba.so", "use_a", 0);
  use("./lib" FAILS ".so", "use_" FAILS, 1);
  pthread_join(thread, 0);
}
"""
# Each thread loads its own plugin, so the schedule decides their addresses. `b` fails if it is used second.
EACH_ITS_OWN = """
#include <dlfcn.h>
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int used;
static void *use_a(void *unused) {
  pthread_mutex_lock(&lock);
  used++;
  void *plugin = dlopen("./liba.so", RTLD_NOW);
  pthread_mutex_unlock(&lock);
  ((void (*)(int))dlsym(plugin, "use_a"))(0);
  return unused;
}
static void *use_b(void *unused) {
  pthread_mutex_lock(&lock);
  int second = used++;
  void *plugin = dlopen("./libb.so", RTLD_NOW);
  pthread_mutex_unlock(&lock);
  ((void (*)(int))dlsym(plugin, "use_b"))(second);
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&b, 0, use_b, 0);
  pthread_create(&a, 0, use_a, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
}
"""


class Dlopen(ProgramTest):
    count = 0

    def plugin(self, text, name="plugin", suffix=".c", flags=()):
        source = self.folder / (name + suffix)
        source.write_text(text)
        compiler = "gcc" if suffix == ".c" else "g++"
        subprocess.run([compiler, "-g", "-O1", "-shared", "-fPIC", *flags, source, "-o", self.folder / f"lib{name}.so"], check=True)

    def host(self, *flags):
        return self.build(HOST, "host", flags=["-Wl,--enable-new-dtags,-rpath,$ORIGIN", *flags])

    def twins(self):
        for name in "ab":
            self.plugin(("\n" if name == "b" else "") * 20 + TWIN.replace("NAME", name), name)

    def found(self, program, *options):
        """Returns the first finding, which must replay."""
        Dlopen.count += 1  # the same title in another test is another bug
        finding, *_ = self.run_json(program, "--out", f"findings-{self.count}", *options)["findings"]
        replayed = self.slalom("replay", finding["capsule"], "--times", "5")
        self.assertIn("the same in 5 of 5", replayed.stdout)
        self.assertIn(finding["title"], " ".join(replayed.stdout.split()))
        return finding

    def test_assertion(self):
        self.plugin(LOST_UPDATE)
        program = self.host()
        titles = {self.found(program, "--strategy", strategy)["title"] for strategy in ("portfolio", "dfs", "pos", "random")}
        self.assertEqual(titles, {f"assertion failed at plugin.c:{line_of(LOST_UPDATE, 'void finish')} (finish): counter == 2"})
        text = self.slalom("run", "--", program).stdout
        for words in ("spawn work#1", "lock plugin_lock", "unlock plugin_lock"):
            self.assertIn(words, text)

    def test_a_module_that_has_changed(self):
        self.plugin(LOST_UPDATE)
        finding = self.found(self.host())
        self.plugin(LOST_UPDATE.replace("counter == 2", "counter < 3"))
        replayed = " ".join(self.slalom("replay", finding["capsule"]).stdout.split())
        self.assertIn("libplugin.so has other contents", replayed)

    def test_constructor(self):
        self.plugin(CONSTRUCTOR)
        self.assertIn(f"plugin.c:{line_of(CONSTRUCTOR, 'void finish')} (finish)", self.found(self.host())["title"])

    def test_deadlock(self):
        self.plugin(DEADLOCK)
        title = self.found(self.host())["title"]
        self.assertIn("deadlock", title)
        self.assertIn(f"plugin.c:{line_of(DEADLOCK, 'crosswise')} (both)", title)

    def test_race(self):
        for host in ([], ["-fsanitize=thread"]):
            with self.subTest(host):
                self.plugin(RACE, flags=["-fsanitize=thread"])
                finding = self.found(self.host(*host), "--schedules", "30", "--fail-on", "race")
                self.assertEqual(finding["kind"], "data-race")
                self.assertIn(f"plugin.c:{line_of(RACE, 'both threads')} (work)", finding["title"])
                self.assertIn("plain", finding["title"] + finding["detail"])

    def test_instrumented_plugin_with_locks(self):
        self.plugin(LOST_UPDATE, flags=["-fsanitize=thread"])
        program = self.host("-fsanitize=thread")
        for strategy in ("portfolio", "dpor:coarse"):
            self.assertIn(f"plugin.c:{line_of(LOST_UPDATE, 'void finish')} (finish)", self.found(program, "--strategy", strategy)["title"])

    def test_headers_of_the_library(self):
        self.plugin(HEADERS, suffix=".cc", flags=["-O0"])
        finding = self.found(self.host())
        self.assertIn(f"plugin.cc:{line_of(HEADERS, 'void finish')} (finish)", finding["title"])
        text = self.slalom("run", "--json", "--", self.folder / "host").stdout
        self.assertNotIn("std_mutex.h", text)
        self.assertIn("plugin_lock", self.slalom("run", "--", self.folder / "host").stdout)

    def test_closed_modules(self):
        self.twins()
        for name in "ab":
            program = self.build(ONE_AFTER_THE_OTHER, flags=[f'-DFAILS="{name}"'])
            line = line_of(TWIN, "!fails") + (20 if name == "b" else 0)
            finding = self.found(program, "--strategy", "dfs")
            self.assertEqual(finding["title"], f"assertion failed at {name}.c:{line} (use_{name}): !fails")
            text = self.slalom("replay", finding["capsule"], "--trace").stdout
            used = re.findall(r" lock +lock_of_(.)", text)
            self.assertEqual(used, ["a", "b", "a", name])

    def test_order_of_loading(self):
        self.twins()
        program = self.build(EACH_ITS_OWN)
        for strategy in ("dfs", "random", "pos"):
            finding = self.found(program, "--strategy", strategy)
            self.assertEqual(finding["title"], f"assertion failed at b.c:{line_of(TWIN, '!fails') + 20} (use_b): !fails")
        text = self.slalom("run", "--", program).stdout
        self.assertIn("lock lock_of_b", text)

    def test_scope(self):
        self.plugin(LOST_UPDATE)
        program = self.host()
        for option in (("--scope", "module:libplugin"), ("--scope", "function:work"), ("--scope", "function:wor*")):
            self.found(program, "--strategy", "dfs", *option)
        for option in (("--atomic", "module:libplugin.so"), ("--atomic", "function:work"), ("--scope", "module:host")):
            result = self.run_json(program, "--strategy", "dfs", *option)
            self.assertEqual(result["findings"], [], option)
            self.assert_finished(result)
        self.assertEqual(len(self.run_json(program, "--strategy", "dfs", "--atomic", "function:get", "--atomic", "function:set")["findings"]), 1)

    def test_what_is_never_loaded(self):
        self.plugin("void other(void) {}")
        program = self.host()
        for option, words in ((("--scope", "module:libabsent.so"), "libplugin.so"), (("--atomic", "function:absent"), "is no function")):
            done = self.slalom("run", "--schedules", "3", *option, "--", program, codes=(2,))
            self.assertIn(words, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
