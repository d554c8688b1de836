#include "preload/runtime/debugger.h"

#include "preload/runtime/runtime.h"

SLALOM_EXPORT __attribute__((noinline)) void slalom_failed(const char* what) {
  asm volatile("" : : "r"(what) : "memory");
}
SLALOM_EXPORT __attribute__((noinline)) void slalom_switched(uint32_t from, uint32_t to) {
  asm volatile("" : : "r"(from), "r"(to) : "memory");
}
