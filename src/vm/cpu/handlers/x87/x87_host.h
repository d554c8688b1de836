// x87 arithmetic on the host's x87 unit. IEEE 754 and compatibility leave all CPUs the same results.
//
// The host computes with the guest's control word, including the exception masks, since they affect the
// results. An unmasked exception only becomes pending on the host. FNINIT clears it before any instruction
// that would fault: between the operation and FNINIT there are only FNSTSW, FNCLEX, and stores whose own
// exceptions FNINIT also clears. Operations on which vendors disagree are not done here.
#pragma once

#include "vm/cpu/handlers/x87/x87.h"

namespace slalom::vm {

struct X87Answer {
  X87Register value;
  uint16_t status = 0;
};

inline constexpr X87Answer kStackUnderflow{x87::kIndefinite, x87::kInvalid | x87::kStackFault};
inline constexpr X87Answer kStackOverflow{x87::kIndefinite, x87::kInvalid | x87::kStackFault | x87::kC1};

// Runs `code` with the operands loaded, and stores st(0).
#define X87_ON_HOST(answer, mode, loads, code, ...)                           \
  asm volatile("fninit\n\tfldcw %[control]\n\t" loads code                    \
               "\n\tfnstsw %[status]\n\tfnclex\n\tfstpt %[value]\n\tfninit"   \
               : [value] "=m"((answer).value), [status] "=m"((answer).status) \
               : [control] "m"(mode), __VA_ARGS__                             \
               : "st", "st(1)", "st(2)")

}  // namespace slalom::vm
