"""The sanitizer's interface for programs: slalom's library replaces it, with every function that can be called."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from support import ProgramTest, SLALOM, two_threads

LIBRARY = Path(SLALOM).parent / "libslalom_preload.so"


def exported(library):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = {line.split()[2].split("@")[0] for line in listed.splitlines() if len(line.split()) == 3}
    wanted = re.compile(r"__tsan_(?!java_|testonly_)|(WTF)?Annotate|RunningOnValgrind|ValgrindSlowdown")
    return {name for name in names if wanted.match(name)}


def ordered(before, after, declared):
    """Two threads take turns by a word that slalom does not see, and describe that with annotations."""
    return two_threads(f"""{declared}
static int counter, taken;
static int take(void) {{ int was = 1; __asm__ volatile("xchgl %0, %1" : "+r"(was), "+m"(taken) : : "memory"); return was; }}
static void give(void) {{ __asm__ volatile("movl $0, %0" : "=m"(taken) : : "memory"); }}
""", f"while (take()) sched_yield(); {after} ++counter; {before} give();", "return counter == 2 ? 0 : 1;").replace(
        "#include <assert.h>", "#include <assert.h>\n#include <sched.h>\n#include <sanitizer/tsan_interface.h>")


ANNOTATED = "void AnnotateHappensBefore(const char *, int, const volatile void *); void AnnotateHappensAfter(const char *, int, const volatile void *);"
LOCKS = "void AnnotateRWLockAcquired(const char *, int, const volatile void *, long); void AnnotateRWLockReleased(const char *, int, const volatile void *, long);"
EDGES = {
    "none": ("", "", ""),
    "edges": ("__tsan_release(&taken);", "__tsan_acquire(&taken);", ""),
    "other_edges": ("__tsan_release(&counter);", "__tsan_acquire(&taken);", ""),
    "mutex": ("__tsan_mutex_pre_unlock(&taken, 0);", "__tsan_mutex_post_lock(&taken, 0, 0);", ""),
    "annotated": ('AnnotateHappensBefore("", 1, &taken);', 'AnnotateHappensAfter("", 1, &taken);', ANNOTATED),
    "rwlock": ('AnnotateRWLockReleased("", 1, &taken, 1);', 'AnnotateRWLockAcquired("", 1, &taken, 1);', LOCKS),
    "ignored": ("__tsan_ignore_thread_end();", "__tsan_ignore_thread_begin();",
                "void __tsan_ignore_thread_begin(void); void __tsan_ignore_thread_end(void);"),
}

# Both threads continue as the same fiber, one after the other.
FIBERS = ordered("__tsan_switch_to_fiber(here, FLAGS);",
                 "void *here = __tsan_get_current_fiber(); __tsan_switch_to_fiber(fiber, FLAGS);",
                 "static void *fiber;").replace("pthread_t a, b;", "pthread_t a, b; fiber = __tsan_create_fiber(0);")


class Interface(ProgramTest):
    def kinds(self, text, name, *flags):
        program = self.build(text, name, flags=["-fsanitize=thread", *flags])
        found = self.run_json(program, "--out", "", "--no-shrink", "--schedules", 100, "--strategy", "random", "--keep-going")
        self.assertEqual(found["trouble"], [])
        return {finding["kind"] for finding in found["findings"]}

    def test_nothing_is_missing(self):
        asked = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True).stdout.strip()
        if not os.path.isabs(asked):
            self.skipTest("gcc has no libtsan here")
        self.assertEqual(exported(asked) - exported(LIBRARY), set())

    def test_synchronisation_that_the_program_explains(self):
        for name, (before, after, declared) in EDGES.items():
            with self.subTest(name):
                expected = {"data-race"} if name in ("none", "other_edges") else set()
                self.assertEqual(self.kinds(ordered(before, after, declared), name), expected)

    def test_races_that_the_program_calls_benign(self):
        text = two_threads("void AnnotateBenignRaceSized(const char *, int, const volatile void *, unsigned long, const char *);\nstatic int counter[2];",
                           "++counter[WHICH];", "return 0;").replace(
                               "pthread_t a, b;", 'pthread_t a, b; AnnotateBenignRaceSized("", 1, &counter[1], sizeof counter[1], "");')
        self.assertEqual(self.kinds(text, "benign", "-DWHICH=1"), set())
        self.assertEqual(self.kinds(text, "other", "-DWHICH=0"), {"data-race"})

    def test_fibers(self):
        self.assertEqual(self.kinds(FIBERS, "fibers", "-DFLAGS=0"), set())
        self.assertEqual(self.kinds(FIBERS, "unordered", "-DFLAGS=1"), {"data-race"})


if __name__ == "__main__":
    unittest.main()
