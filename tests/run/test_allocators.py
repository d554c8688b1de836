"""Programs with an allocator of their own: the allocator's locks do not count as the program's."""

import subprocess
import unittest

from support import ProgramTest

ALLOCATOR = """
#include <pthread.h>
#include <stddef.h>
#include <string.h>
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static char room[1 << 22];
static size_t used;
void *malloc(size_t size) {
  pthread_mutex_lock(&heap_lock);
  char *memory = room + used;
  used += (size + 31) / 16 * 16;
  *(size_t *)memory = size;
  pthread_mutex_unlock(&heap_lock);
  return memory + 16;
}
void free(void *memory) {
  (void)memory;
  pthread_mutex_lock(&heap_lock);
  ++used;
  --used;
  pthread_mutex_unlock(&heap_lock);
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *memory, size_t size) {
  void *moved = malloc(size);
  size_t before = memory == NULL ? 0 : ((size_t *)memory)[-2];
  if (memory != NULL) memcpy(moved, memory, size < before ? size : before);
  return moved;
}
void *memalign(size_t alignment, size_t size) {
  return (void *)(((size_t)malloc(size + alignment) + alignment - 1) / alignment * alignment);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return 0;
}
"""

# Two threads lock three times each: 6! / (3! 3!) interleavings. pthread_create() and printf() allocate memory while libc's own
# locks are held.
USER = """
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *work(void *unused) {
  for (int i = 0; i < 3; ++i) {
    char *memory = malloc(100 + (size_t)i * 5000);
    memset(memory, 1, 100);
    pthread_mutex_lock(&lock);
    ++counter;
    pthread_mutex_unlock(&lock);
    free(memory);
    printf("%d\\n", i);
  }
  return unused;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0);
  pthread_create(&b, 0, work, 0);
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(counter == EXPECTED);
}
"""


class Allocators(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = cls.folder / "allocator.c"
        source.write_text(ALLOCATOR)
        subprocess.run(["gcc", "-O2", "-fno-builtin", "-shared", "-fPIC", source, "-o", cls.folder / "liballocator.so"], check=True)
        subprocess.run(["gcc", "-O2", "-fno-builtin", "-c", source, "-o", cls.folder / "allocator.o"], check=True)

    def build_with(self, *flags, expected=6):
        return self.build(USER, flags=[f"-DEXPECTED={expected}", *flags, f"-Wl,-rpath,{self.folder}"])

    def search(self, program):
        result = self.run_json(program, "--strategy", "dpor:coarse")
        self.assertEqual(result["trouble"], [])
        self.assert_finished(result)
        return result

    def test_in_a_library(self):
        for flags in ([], ["-Wl,--no-as-needed", self.folder / "liballocator.so"]):
            result = self.search(self.build_with(*flags))
            self.assertEqual((result["classes"], result["findings"]), (20, []), flags)

    def test_in_the_program(self):
        result = self.search(self.build_with(self.folder / "allocator.o"))
        self.assertEqual(result["findings"], [])

    def test_what_the_program_does_is_found(self):
        result = self.run_json(self.build_with("-Wl,--no-as-needed", self.folder / "liballocator.so", expected=5))
        self.assertEqual([one["kind"] for one in result["findings"]], ["assertion"])
        self.assertEqual(result["findings"][0]["replayed"], "10/10")


if __name__ == "__main__":
    unittest.main()
