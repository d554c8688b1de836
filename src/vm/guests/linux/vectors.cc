#include "vm/guests/linux/vectors.h"

#include <fmt/format.h>

namespace slalom::vm {

std::string vector_name(unsigned vector) {
  switch (vector) {
    case 0x00:
      return "divide error";
    case 0x01:
      return "debug exception";
    case 0x02:
      return "NMI";
    case 0x03:
      return "breakpoint";
    case 0x06:
      return "invalid opcode";
    case 0x07:
      return "no FPU";
    case 0x0d:
      return "general protection fault";
    case 0x0e:
      return "page fault";
    case 0xec:
      return "timer interrupt";
    case 0xf6:
      return "irq work";
    case 0xfb:
      return "call from another CPU";
    case 0xfc:
      return "call of a function";
    case 0xfd:
      return "reschedule";
    default:
      return fmt::format("{} {:#x}", vector < 0x20 ? "exception" : "interrupt", vector);
  }
}

}  // namespace slalom::vm
