#include "vm/scenario/kernel_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "inputs/system_calls.h"
#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/vectors.h"

namespace slalom::vm {
KernelNames::KernelNames(SymbolTable symbols, std::vector<std::string> flows, unsigned cpus)
    : symbols_(std::move(symbols)) {
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    const std::string name = cpu < flows.size() ? flows[cpu] : fmt::format("cpu{}", cpu);
    agents_[KernelMachine::cpu_agent(cpu)] = name;
    for (unsigned vector = 0; vector < 256; ++vector)
      for (unsigned nested = 0; nested < 2; ++nested)
        agents_[KernelMachine::interrupt_agent(cpu, static_cast<uint8_t>(vector), nested)] =
            fmt::format("{}{} on cpu{}", nested > 0 ? "nested " : "", vector_name(vector), cpu);
  }
}

std::string KernelNames::agent(AgentId id) const {
  const auto found = agents_.find(id);
  return found == agents_.end() ? id.path() : found->second;
}

std::string KernelNames::object(ObjectId id) const {
  if (symbols_.at(id.raw) != nullptr) return symbols_.describe(id.raw);
  for (size_t cpu = 0; cpu < per_cpu_offsets_.size(); ++cpu) {
    const uint64_t variable = id.raw - per_cpu_offsets_[cpu];
    if (variable < per_cpu_start_ || variable >= per_cpu_end_) continue;
    const auto& all = symbols_.symbols();
    const auto next =
        std::ranges::upper_bound(all, variable, {}, [](const Symbol& symbol) { return symbol.address; });
    if (next == all.begin()) continue;
    auto symbol = std::prev(next);
    // Prefer a variable's name to the linker's own symbol at the same address.
    while (symbol != all.begin() && symbol->name.starts_with("__per_cpu") &&
           std::prev(symbol)->address == symbol->address)
      --symbol;
    const uint64_t offset = variable - symbol->address;
    return offset == 0 ? fmt::format("{}[cpu{}]", symbol->name, cpu)
                       : fmt::format("{}[cpu{}]+{:#x}", symbol->name, cpu, offset);
  }
  return fmt::format("{:#x}", id.raw);
}

void KernelNames::read_per_cpu(GuestMemory& memory, unsigned cpus) {
  const auto start = symbols_.address_of("__per_cpu_start");
  const auto end = symbols_.address_of("__per_cpu_end");
  const auto offsets = symbols_.address_of("__per_cpu_offset");
  if (!start || !end || !offsets) return;
  std::vector<uint64_t> found(cpus);
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    std::array<uint8_t, 8> bytes{};
    if (!memory.read(*offsets + 8 * cpu, bytes)) return;
    for (size_t i = bytes.size(); i-- > 0;) found[cpu] = found[cpu] << 8 | bytes[i];
  }
  per_cpu_start_ = *start;
  per_cpu_end_ = *end;
  per_cpu_offsets_ = std::move(found);
}

void KernelNames::set_calls(unsigned cpu, CallProgram calls) {
  std::erase_if(calls.steps, [](const CallStep& step) { return step.kind != CallStep::Kind::Call; });
  calls_[KernelMachine::cpu_agent(cpu)] = std::move(calls);
}

std::string KernelNames::system_call(AgentId agent, uint64_t ordinal, int64_t number) const {
  // Calls that the agent makes itself, before and after the flow's, are not in the test file.
  if (const auto flow = calls_.find(agent); flow != calls_.end()) {
    const CallProgram& calls = flow->second;
    if (ordinal < calls.steps.size() && ordinal < calls.sources.size() &&
        calls.steps[ordinal].number == number)
      return calls.sources[ordinal].text;
  }
  const bool known = number >= 0 && number <= kMaxSystemCall;
  const std::string_view name = known ? system_call_name(static_cast<uint32_t>(number)) : "";
  return name.empty() ? fmt::format("system call {}", number) : std::string(name);
}

std::string KernelNames::system_result(int64_t value) const {
  return describe_result(value);
}

}  // namespace slalom::vm
