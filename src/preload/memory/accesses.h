// Memory accesses, for those who tell of them on behalf of code that is not instrumented (libc's functions,
// the heap), and for those who give a thread's storage to another one.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

#include "trace/op.h"

namespace slalom::preload {

// Where in the user's code an instrumented function is that returns there; cheap.
uint64_t access_place(void* return_address);
// The nearest caller of an instrumented function that is the user's own; `otherwise`: there is none.
[[gnu::noinline]] uint64_t caller_place(uint64_t otherwise);
// Plain accesses to all of a range, about to be made by the running agent. May stop before any of them.
void tell_range(OpKind op, const void* address, uint64_t size, uint64_t pc);

// What the program has asked not to look at: the running thread's loads or stores, from `more` = 1 to -1; and
// memory, for good.
void ignore(OpKind op, int more);
void ignore_memory(const void* address, uint64_t size);
bool sees(OpKind op, const void* address);

// Where a thread is in instrumented code, so that an access inside the C++ library's headers is told with the
// place of their caller.
struct Calls {
  static constexpr uint32_t kDepth = 256;
  uint64_t return_to[kDepth];
  uint32_t depth;
};
void swap_calls(Calls& of_last, Calls& of_next);  // the running thread goes on as another fiber

// What libc and the kernel do with memory for the user's code that returns there: bytes that go to a
// descriptor, told before; those that came from one, told afterwards (gives `size`); text that is formatted.
void sends(const void* buffer, size_t size, void* return_address);
void sends(const iovec* parts, size_t count, void* return_address);
ssize_t received(void* buffer, ssize_t size, void* return_address);
ssize_t received(const iovec* parts, size_t count, ssize_t size, void* return_address);
void formats(const char* text, size_t size, void* return_address);
void formatted(const char* text, size_t size, void* return_address);

void forget_accesses();  // the calling thread is a new one
uint32_t call_depth();   // how deep it is in functions that were built with -fsanitize=thread
void set_call_depth(uint32_t depth);

}  // namespace slalom::preload
