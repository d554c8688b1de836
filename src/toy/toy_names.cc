#include "toy/toy_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace slalom {
namespace {

template <typename Items>
std::string element_name(const Items& items, uint32_t index) {
  for (const auto& item : items)
    if (index - item.first < item.size)
      return item.array ? fmt::format("{}[{}]", item.name, index - item.first) : item.name;
  return fmt::format("object {}", index);
}

}  // namespace

const ToyInitialAgent* ToyNames::initial(AgentId id) const {
  const auto& agents = program_->agents;
  const auto found = std::find_if(agents.begin(), agents.end(),
                                  [&](const ToyInitialAgent& agent) { return agent.id == id; });
  return found == agents.end() ? nullptr : &*found;
}

std::string ToyNames::agent(AgentId id) const {
  if (const ToyInitialAgent* agent = initial(id)) return agent->name;
  return fmt::format("{}@{}", role(id), id.path());
}

std::string ToyNames::role(AgentId id) const {
  if (const ToyInitialAgent* agent = initial(id)) return program_->blocks[agent->block].name;
  const auto spawned = spawned_.find(id);
  return spawned == spawned_.end() ? "agent" : program_->blocks[spawned->second].name;
}

std::string ToyNames::object(ObjectId id) const {
  using Range = ToyObjectName::Range;
  const ToyObjectName name = toy_object_name(id);
  const auto block = [&] {
    return name.index < program_->blocks.size() ? program_->blocks[name.index].name
                                                : fmt::format("object {:#x}", id.raw);
  };
  // A path too deep for its number is unknown, but the number still distinguishes two of them.
  const std::string who = name.agent ? agent(name.agent) : fmt::format("{:#x}", id.raw);
  switch (name.range) {
    case Range::Cell:
      return element_name(program_->shared, name.index);
    case Range::Sync:
      return element_name(program_->sync, name.index);
    case Range::Interrupt:
    case Range::Timer:
      return block();
    case Range::Agent:
      return who;
    case Range::Cpu:
      return fmt::format("cpu({})", who);
    case Range::Heap: {
      const std::string heap =
          name.agent ? fmt::format("heap({},{})", who, name.index + 1) : fmt::format("heap({})", who);
      return name.cell ? fmt::format("{}[{}]", heap, *name.cell) : heap;
    }
    case Range::Unknown:
      break;
  }
  return fmt::format("object {:#x}", id.raw);
}

std::string ToyNames::place(Place pc) const {
  if (pc.raw == 0 || pc.raw > program_->code.size()) return "?";
  const ToyProgram::Location location = program_->locations[pc.raw - 1];
  const std::string& name = program_->blocks[location.block].name;
  if (location.line != 0) return fmt::format("{}:{}", name, location.line);
  return fmt::format("{}:{}", name, program_->code[pc.raw - 1].op == ToyOp::End ? "end" : "entry");
}

std::string ToyNames::source(Place pc) const {
  if (pc.raw == 0 || pc.raw > program_->code.size()) return "";
  const ToyProgram::Location location = program_->locations[pc.raw - 1];
  const auto& lines = program_->blocks[location.block].lines;
  return location.line == 0 || location.line > lines.size() ? "" : lines[location.line - 1];
}

}  // namespace slalom
