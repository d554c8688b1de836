// The kernel's own asynchronous input and output: not controlled, but noted. Programs reach it through
// syscall() (preload/processes/system.cc), or through libaio and liburing, which make system calls directly.
// This file intercepts the functions of these libraries with which every use begins.
#include <errno.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

// Passes all possible arguments on.
#define SLALOM_BEGINS_KERNEL_IO(name)                                              \
  extern "C" long name(long, long, long, long, long, long);                        \
  SLALOM_EXPORT long name(long a, long b, long c, long d, long e, long f) {        \
    using namespace slalom::preload;                                               \
    if (runtime().controls()) runtime().note_uncontrolled(Uncontrolled::KernelIo); \
    const auto library = SLALOM_REAL(name);                                        \
    return library == nullptr ? -ENOSYS : library(a, b, c, d, e, f);               \
  }

SLALOM_BEGINS_KERNEL_IO(io_setup)
SLALOM_BEGINS_KERNEL_IO(io_queue_init)
SLALOM_BEGINS_KERNEL_IO(io_uring_queue_init)
SLALOM_BEGINS_KERNEL_IO(io_uring_queue_init_params)
SLALOM_BEGINS_KERNEL_IO(io_uring_queue_init_mem)
SLALOM_BEGINS_KERNEL_IO(io_uring_setup)
