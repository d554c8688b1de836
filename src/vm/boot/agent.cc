// The agent's program, which the build embeds into slalom (guest/CMakeLists.txt).
#include "vm/boot/initramfs.h"

extern "C" {
extern const uint8_t slalom_agent_begin[];
extern const uint8_t slalom_agent_end[];
}

namespace slalom::vm {

std::span<const uint8_t> agent_program() {
  return {slalom_agent_begin, slalom_agent_end};
}

}  // namespace slalom::vm
