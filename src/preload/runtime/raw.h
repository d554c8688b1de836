// Helpers of the runtime: system calls that do not touch errno, calls on a stack of its own, and access to
// the libc function that an interposed one hides.
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

// Calls a function on a stack of the runtime's own, so that it leaves no data below the program's stack,
// where a buggy program may read. Not for functions that wait, since there is only one such stack.
inline constexpr size_t kOwnStack = 16384;
alignas(16) inline char own_stack[kOwnStack];
inline uint64_t stack_before = 0;
[[gnu::always_inline]] inline void call_on_own_stack(void (*function)(void*), void* argument) {
  // The clobbers are the caller-saved registers.
  asm volatile(
      "movq %%rsp, %[before]\n\t"
      "movq %[top], %%rsp\n\t"
      "call *%[function]\n\t"
      "movq %[before], %%rsp"
      : "+D"(argument), [before] "+m"(stack_before)
      : [top] "r"(own_stack + kOwnStack), [function] "r"(function)
      : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
        "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

// These work on memory shared between processes.
template <typename Word>
void futex_wait(std::atomic<Word>& word, Word expected) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT, static_cast<long>(expected));
}
template <typename Word>
void futex_wake(std::atomic<Word>& word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAKE, 1);
}

// Clears the data that returned functions left below the caller's frame. The program would otherwise find it
// in uninitialised variables.
[[gnu::noinline]] inline void clear_stack() {
  volatile uint64_t room[512];
  for (volatile uint64_t& word : room) word = 0;
}

}  // namespace slalom::preload

// The libc function that the interposed function `name` hides.
#define SLALOM_REAL(name)                                  \
  ([] {                                                    \
    static void* found = nullptr;                          \
    if (found == nullptr) found = dlsym(RTLD_NEXT, #name); \
    return reinterpret_cast<decltype(&::name)>(found);     \
  }())
