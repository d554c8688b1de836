// MadeUpNames: different names for everything, which no reader could guess from the numbers.
#pragma once

#include <fmt/format.h>

#include "trace/names.h"

namespace slalom {

class MadeUpNames : public Names {
 public:
  std::string agent(AgentId id) const override { return fmt::format("agent<{}>", id.raw % 1009); }
  std::string role(AgentId id) const override { return fmt::format("role<{}>", id.raw % 13); }
  std::string object(ObjectId id) const override { return fmt::format("object<{}>", id.raw % 1013); }
  std::string place(Place pc) const override { return fmt::format("place<{}>", pc.raw % 1019); }
  std::string source(Place pc) const override { return fmt::format("source<{}>", pc.raw % 1021); }
  std::string line(Place pc) const override { return fmt::format("line<{}>", pc.raw % 1031); }
  std::string system_call(AgentId agent, uint64_t ordinal, int64_t number) const override {
    // As a kernel test's: its own words for the first calls.
    return ordinal < 2 ? fmt::format("call<{}>({}, {})", number, agent.raw % 7, ordinal)
                       : fmt::format("call<{}>", number);
  }
  std::string system_result(int64_t value) const override {
    return value < 0 ? fmt::format("error<{}>", value) : std::to_string(value);
  }
  Marking marking(Place pc, bool writes) const override {
    return static_cast<Marking>((pc.raw + (writes ? 1 : 0)) % 3);
  }
};

}  // namespace slalom
