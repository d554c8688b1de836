// Describes fatal signals for reports. Both kinds of executions (forked and in-process) use it.
#pragma once

#include <signal.h>

#include <cstdint>

namespace slalom::preload {

// `overflow` is the description of an address at the end of a stack; nullptr if the address is elsewhere.
inline const char* fault_words(int signal, const siginfo_t& info, const char* overflow) {
  switch (signal) {
    case SIGSEGV:
      if (reinterpret_cast<uint64_t>(info.si_addr) < 4096) return "segmentation fault: use of a null pointer";
      return overflow != nullptr ? overflow : "segmentation fault";
    case SIGBUS:
      return "bus error";
    case SIGFPE:
      return "arithmetic error: division by zero or overflow";
    case SIGILL:
      return "illegal instruction";
    case SIGTRAP:
      return "trap instruction";
    case SIGABRT:
      return "abort";
    default:
      return "fatal signal";
  }
}

}  // namespace slalom::preload
