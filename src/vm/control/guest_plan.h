// What a test makes the guest do, as far as the machine that runs it has to know.
#pragma once

#include <cstdint>
#include <string>

namespace slalom::vm {

// A part of the plan that the guest's agent follows, for messages: {"x.toml:7", "set-up command `mount
// ...`"}.
struct PlanPart {
  std::string where, what;
};

// How long a guest may idle, in nanoseconds of its own time, if it may execute this many instructions: one
// minute per billion instructions.
constexpr uint64_t longest_wait(uint64_t instructions) {
  return 60 * instructions;
}

}  // namespace slalom::vm
