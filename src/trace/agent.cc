#include "trace/agent.h"

#include <fmt/format.h>

namespace slalom {

std::string AgentId::path() const {
  if (raw == 0) return "-";
  if ((raw >> 56) == 0xff) return fmt::format("#{:016x}", raw);
  std::string text;
  for (int shift = 56; shift >= 0; shift -= 8) {
    const auto component = static_cast<uint32_t>(raw >> shift) & 0xff;
    if (component == 0) break;
    if (!text.empty()) text += '.';
    text +=
        component >= kFirstLine ? fmt::format("irq{}", component - kFirstLine) : fmt::format("{}", component);
  }
  return text;
}

}  // namespace slalom
