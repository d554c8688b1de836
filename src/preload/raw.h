// System calls, the stack and libc's own functions, for the runtime: system calls without errno, and the
// function that an interposed one hides.
#pragma once

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdint>

namespace slalom::preload {

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// On memory shared between processes.
template <typename Word>
void futex_wait(std::atomic<Word>& word, Word expected) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT, static_cast<long>(expected));
}
template <typename Word>
void futex_wake(std::atomic<Word>& word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE, 1);
}

// What functions that have returned left below the caller's frame: the program would find it in variables
// that it does not set.
[[gnu::noinline]] inline void clear_stack() {
  volatile uint64_t room[512];
  for (volatile uint64_t& word : room) word = 0;
}

}  // namespace slalom::preload

// The function that the interposed one of this name hides.
#define SLALOM_REAL(name)                                  \
  ([] {                                                    \
    static void* found = nullptr;                          \
    if (found == nullptr) found = dlsym(RTLD_NEXT, #name); \
    return reinterpret_cast<decltype(&::name)>(found);     \
  }())
