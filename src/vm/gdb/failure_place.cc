#include "vm/gdb/failure_place.h"

#include <algorithm>
#include <array>
#include <optional>

#include "vm/control/kernel_machine.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

// How far (in instructions) evidence may be from what it describes: some counts are taken before an
// instruction and some after it, and an interrupt may come in between.
constexpr uint64_t kNear = 4;
constexpr uint64_t kCallBytes = 5;  // of a direct call
constexpr uint8_t kCall = 0xe8;

class Finder {
 public:
  Finder(Debugger& debugger, const Course& course, const SymbolTable& symbols)
      : debugger_(debugger), course_(course), symbols_(symbols) {}
  ~Finder() { debugger_.breakpoints.clear(); }

  FailurePlace find(const Verdict& verdict) {
    const size_t rip = verdict.detail.find("RIP: 0010:");
    const bool told_by_console = std::ranges::any_of(
        verdict.evidence, [](const Evidence& one) { return one.text == "the kernel begins to report it"; });
    if (told_by_console && rip != std::string::npos)
      if (auto found = faulting(verdict, verdict.detail.substr(rip + 10))) return *found;
    if (told_by_console)
      if (auto found = reporting(verdict)) return *found;
    switch (verdict.kind) {
      case BugKind::DataRace:
        return latest(verdict, "before the second access of the race");
      case BugKind::WeakMemory:
        return latest(verdict, "before the last access that could come in another order");
      case BugKind::UseAfterFree:
        return latest(verdict, "before the use of freed memory");
      case BugKind::DoubleFree:
        return latest(verdict, "before the bad free");
      case BugKind::Deadlock:
      case BugKind::LostWakeup:
        return waiting(verdict);
      case BugKind::Assertion:
      case BugKind::Crash:
      case BugKind::Livelock:
      case BugKind::GoodSamaritan:
      case BugKind::Leak:
        break;
    }
    return end("at the end of the schedule");
  }

 private:
  FailurePlace end(std::string text) { return {debugger_.seek(course_.end), std::move(text)}; }

  uint64_t position(const Evidence& evidence) const {
    return std::min(course_.begin + evidence.step.raw, course_.end);
  }

  std::optional<unsigned> cpu_of(AgentId agent) {
    while (agent && agent.parent()) agent = agent.parent();
    for (unsigned cpu = 0; cpu < debugger_.pc().cpu_count(); ++cpu)
      if (KernelMachine::cpu_agent(cpu) == agent) return cpu;
    return std::nullopt;
  }

  // Finds the last time before `before` that a CPU executed one of these addresses.
  std::optional<DebugStop> last_at(const std::vector<uint64_t>& addresses, uint64_t before,
                                   std::optional<unsigned> cpu) {
    debugger_.breakpoints = {addresses.begin(), addresses.end()};
    while (debugger_.seek(before).kind == DebugStop::Kind::Break) {  // skip breakpoints on the way
    }
    std::optional<DebugStop> found;
    for (unsigned tries = 0; tries < 1000 && !found; ++tries) {
      const DebugStop stop = debugger_.go_back();
      if (stop.kind != DebugStop::Kind::Break) break;
      if (!cpu || stop.cpu == *cpu) found = stop;
    }
    debugger_.breakpoints.clear();
    return found;
  }

  std::optional<DebugStop> before(const Evidence& evidence) {
    const uint64_t place = position(evidence);
    const auto cpu = cpu_of(evidence.agent);
    const uint64_t end = std::min(place + kNear, course_.end);
    auto stop = last_at({evidence.pc.raw}, end, cpu);
    if (stop && debugger_.position().executed + kNear >= place) return stop;
    return last_call_before(evidence.pc.raw, end, cpu);
  }

  // Evidence of a function is its return address.
  std::optional<DebugStop> last_call_before(uint64_t return_address, uint64_t before,
                                            std::optional<unsigned> cpu) {
    std::array<uint8_t, 1> opcode{};
    const uint64_t call = return_address - kCallBytes;
    if (!read_all(debugger_.pc().cpu(cpu.value_or(0)), call, opcode) || opcode[0] != kCall)
      return std::nullopt;
    return last_at({call}, before, cpu);
  }

  FailurePlace latest(const Verdict& verdict, std::string text) {
    const auto last = std::ranges::max_element(verdict.evidence, {}, &Evidence::step);
    if (last == verdict.evidence.end()) return end("at the end of the schedule");
    if (const auto stop = before(*last)) return {*stop, std::move(text)};
    return {debugger_.seek(position(*last)), "near " + text.substr(text.find(' ') + 1)};
  }

  // `place`: "func+0x12/0x34 [module]" from the kernel's report.
  std::optional<FailurePlace> faulting(const Verdict& verdict, const std::string& place) {
    const size_t plus = place.find('+');
    const size_t slash = place.find('/', plus);
    if (plus == std::string::npos || slash == std::string::npos) return std::nullopt;
    uint64_t offset = 0;
    try {
      offset = std::stoull(place.substr(plus + 1, slash - plus - 1), nullptr, 16);
    } catch (const std::exception&) {
      return std::nullopt;
    }
    std::vector<uint64_t> addresses;
    for (const Symbol* symbol : symbols_.named(place.substr(0, plus)))
      addresses.push_back(symbol->address + offset);
    if (addresses.empty()) return std::nullopt;
    const auto stop = last_at(addresses, position(verdict.evidence.front()), std::nullopt);
    if (!stop) return std::nullopt;
    return FailurePlace{*stop, "before the instruction that failed"};
  }

  // Finds the call that printed the report's first line.
  std::optional<FailurePlace> reporting(const Verdict& verdict) {
    std::vector<uint64_t> addresses;
    for (const char* name : {"_printk", "printk"})
      for (const Symbol* symbol : symbols_.named(name)) addresses.push_back(symbol->address);
    const auto stop = last_at(addresses, position(verdict.evidence.front()), std::nullopt);
    if (!stop) return std::nullopt;
    return FailurePlace{*stop, "where the kernel begins to report it"};
  }

  // Stops at the end, if a flow still spins there. If all CPUs sleep, stops where the last flow began to
  // wait.
  FailurePlace waiting(const Verdict& verdict) {
    const FailurePlace at_end = end("where nothing can go on");
    std::optional<unsigned> awake;
    std::optional<DebugStop> last;
    uint64_t last_position = 0;
    std::vector<std::pair<uint64_t, unsigned>> sleepers;
    for (const Evidence& evidence : verdict.evidence) {
      const auto cpu = cpu_of(evidence.agent);
      if (!cpu) continue;
      if (debugger_.pc().cpu(*cpu).regs.activity == Activity::Running)
        awake = *cpu;
      else
        sleepers.emplace_back(evidence.pc.raw, *cpu);
    }
    if (awake) return {{.kind = at_end.stop.kind, .cpu = *awake}, at_end.text};
    for (const auto& [pc, cpu] : sleepers)
      if (const auto stop = last_call_before(pc, course_.end, cpu);
          stop && debugger_.position().executed > last_position) {
        last = stop;
        last_position = debugger_.position().executed;
      }
    if (!last) return end(at_end.text);
    debugger_.seek(last_position);
    return {*last, "where the last flow begins to wait"};
  }

  Debugger& debugger_;
  const Course& course_;
  const SymbolTable& symbols_;
};

}  // namespace

FailurePlace go_to_failure(Debugger& debugger, const Course& course, const Verdict& verdict,
                           const SymbolTable& symbols) {
  return Finder(debugger, course, symbols).find(verdict);
}

}  // namespace slalom::vm
