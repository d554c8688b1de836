// Memory accesses: the interface for code that reports accesses on behalf of uninstrumented code (libc's
// functions, the heap), and for code that gives a thread's storage to another thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

#include "trace/op.h"

namespace slalom::preload {

// Returns the place in the user's code of an instrumented function that returns there. Cheap.
uint64_t access_place(void* return_address);
// Returns the nearest caller of an instrumented function that is in the user's own code; `otherwise` if there
// is none.
[[gnu::noinline]] uint64_t caller_place(uint64_t otherwise);
// Reports plain accesses to a whole range that the running agent is about to make. May stop before any of
// them.
void tell_range(OpKind op, const void* address, uint64_t size, uint64_t pc);

// Accesses that the program asks to ignore: the running thread's loads or stores (`more` 1 begins, -1 ends),
// and memory, permanently.
void ignore(OpKind op, int more);
void ignore_memory(const void* address, uint64_t size);
bool sees(OpKind op, const void* address);

// The calls of instrumented functions that a thread is in. An access inside the C++ library's headers is
// reported with the place of their caller.
struct Calls {
  static constexpr uint32_t kDepth = 256;
  uint64_t return_to[kDepth];
  uint32_t depth;
};
void swap_calls(Calls& of_last, Calls& of_next);  // the running thread continues as another fiber

// Report the memory that libc and the kernel access for the user's code that returns to `return_address`.
// sends(): bytes that go to a descriptor; call before. received(): bytes that came from one; call afterwards;
// returns `size`. formats() and formatted(): text that formatting reads and writes.
void sends(const void* buffer, size_t size, void* return_address);
void sends(const iovec* parts, size_t count, void* return_address);
ssize_t received(void* buffer, ssize_t size, void* return_address);
ssize_t received(const iovec* parts, size_t count, ssize_t size, void* return_address);
void formats(const char* text, size_t size, void* return_address);
void formatted(const char* text, size_t size, void* return_address);

void forget_accesses();  // call if the calling thread stands for a new one
uint32_t call_depth();   // nesting depth in functions built with -fsanitize=thread
void set_call_depth(uint32_t depth);

}  // namespace slalom::preload
