#include "vm/kernel/kernel_names.h"

#include <fmt/format.h>

#include "vm/kernel/kernel_machine.h"

namespace slalom::vm {
namespace {

// Linux's own.
std::string interrupt_name(unsigned vector) {
  switch (vector) {
    case 0x02:
      return "NMI";
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
      return fmt::format("interrupt {:#x}", vector);
  }
}

}  // namespace

KernelNames::KernelNames(SymbolTable symbols, std::vector<std::string> flows, unsigned cpus)
    : symbols_(std::move(symbols)) {
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    const std::string name = cpu < flows.size() ? flows[cpu] : fmt::format("cpu{}", cpu);
    agents_[KernelMachine::cpu_agent(cpu)] = name;
    for (unsigned vector = 0; vector < 256; ++vector)
      agents_[KernelMachine::interrupt_agent(cpu, static_cast<uint8_t>(vector))] =
          fmt::format("{} on cpu{}", interrupt_name(vector), cpu);
  }
}

std::string KernelNames::agent(AgentId id) const {
  const auto found = agents_.find(id);
  return found == agents_.end() ? id.path() : found->second;
}

std::string KernelNames::object(ObjectId id) const {
  const Symbol* symbol = symbols_.at(id.raw);
  return symbol != nullptr ? symbols_.describe(id.raw) : fmt::format("{:#x}", id.raw);
}

}  // namespace slalom::vm
