// AgentId: a vCPU, an interrupt context or a thread. The id is the agent's creation path, so it means the
// same agent in every execution: the second child of the first initial agent is "1.2", whenever that agent
// creates it.
//
// The path is packed big-endian, one byte per level, so comparing raw values orders agents by path. A path
// that does not fit (more than eight levels, or an ordinal above 200) is folded into a hash, which is still a
// function of the path. Ids are not dense indices: AgentTable in explore/agent_set.h makes those.
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.h"

namespace slalom {

struct AgentId {
  uint64_t raw = 0;  // 0 means no agent

  constexpr auto operator<=>(const AgentId&) const = default;
  constexpr explicit operator bool() const { return raw != 0; }

  // Ordinals count from 0.
  static constexpr AgentId initial(uint32_t ordinal) { return AgentId{}.child(ordinal); }
  constexpr AgentId child(uint32_t ordinal) const {
    return extended(ordinal <= kLastOrdinal ? ordinal + 1 : 0, ordinal);
  }
  // Returns the context of interrupt `line` on this agent.
  constexpr AgentId interrupt(uint32_t line) const {
    return extended(line < 0xff - kFirstLine ? kFirstLine + line : 0, line + 0x10000);
  }
  // Returns the agent that created or was interrupted by this one; no agent for an initial agent or a folded
  // path.
  constexpr AgentId parent() const {
    if ((raw >> 56) == 0xff) return {};
    for (int shift = 0; shift < 64; shift += 8)
      if (((raw >> shift) & 0xff) != 0) return AgentId{raw & ~(uint64_t{0xff} << shift)};
    return {};
  }
  std::string path() const;  // "1.2", "1.irq0"; "#0123456789abcdef" if folded

 private:
  static constexpr uint32_t kLastOrdinal = 200;
  static constexpr uint32_t kFirstLine = 0xd0;
  static constexpr uint64_t kFolded = 0xff00000000000000u;

  constexpr AgentId extended(uint32_t component, uint32_t identity) const {
    if (component != 0 && (raw >> 56) != 0xff) {
      for (int shift = 56; shift >= 0; shift -= 8)
        if (((raw >> shift) & 0xff) == 0) return AgentId{raw | (static_cast<uint64_t>(component) << shift)};
    }
    return AgentId{kFolded | combine(raw, identity)};
  }
};

}  // namespace slalom
