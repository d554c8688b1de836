#include "vm/guests/linux/trace_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/system_calls.h"
#include "vm/guests/linux/calls/system_call_text.h"
#include "vm/guests/linux/vectors.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostIndented = 24;

// It is not known whether a function returns an int or a long. A value that is an error as an int is most
// likely one.
std::string call_result(int64_t value) {
  constexpr int64_t kFirstError = 0xffff'f001, kLastError = 0xffff'ffff;
  const bool is_error = value >= kFirstError && value <= kLastError;
  return describe_result(is_error ? static_cast<int32_t>(value) : value);
}

std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown)
    if (c < ' ' || c > '~') c = c == '\n' ? ' ' : '?';
  while (!shown.empty() && shown.back() == ' ') shown.pop_back();
  return shown;
}

}  // namespace

std::string TraceLines::start(uint64_t step, AgentId agent) const {
  const auto task = tasks_.find(agent);
  // CPU i is the initial agent i. Other agents of a trace (interrupts in kernel tests) are shown by their
  // path.
  const uint64_t first = agent.raw >> 56;
  const bool is_cpu = first != 0 && agent == AgentId::initial(static_cast<uint32_t>(first - 1));
  const std::string cpu = is_cpu ? fmt::format("cpu{}", first - 1) : agent.path();
  return fmt::format("{:>11} {} {:<16} ", step, cpu, task == tasks_.end() ? "?" : task->second);
}

std::string TraceLines::place(uint64_t pc) const {
  const std::string line = names_.line(Place{pc});
  return line.empty() ? names_.place(Place{pc}) : fmt::format("{} ({})", names_.place(Place{pc}), line);
}

std::string TraceLines::function_call(const Event& event) {
  size_t& depth = depths_[tasks_[event.agent]];
  const bool enters = event.op == OpKind::Call;
  if (!enters && depth > 0) --depth;
  const std::string indent(2 * std::min(depth, kMostIndented), ' ');
  if (enters) ++depth;
  const std::string function = names_.place(Place{event.object.raw});
  if (!enters) return fmt::format("{}{} = {}", indent, function, call_result(event.value));
  return fmt::format("{}{}({})  at {}", indent, function, printable(event.text), place(event.pc.raw));
}

std::string TraceLines::event(const Event& event) {
  if (event.op == OpKind::ThreadSwitch) {
    const std::string line = start(event.step.raw, event.agent) + "switch  to " + printable(event.text);
    tasks_[event.agent] = printable(event.text);
    return line;
  }
  const std::string line = start(event.step.raw, event.agent);
  const std::string text = printable(event.text);
  const auto number = static_cast<uint64_t>(event.value);
  const auto place = [&] { return this->place(event.pc.raw); };
  switch (event.op) {
    case OpKind::Lock:
    case OpKind::TryLock:
    case OpKind::Unlock:
    case OpKind::ReadLock:
    case OpKind::ReadUnlock:
    case OpKind::WriteLock:
    case OpKind::WriteUnlock:
      return line + fmt::format("lock    {} {}  at {}", text, names_.object(event.object), place());
    case OpKind::Alloc:
      return line +
             fmt::format("alloc   {:#x}, {} bytes, {}  at {}", event.object.raw, event.value, text, place());
    case OpKind::Free: {
      const std::string size = event.value == 0 ? "" : fmt::format(", {} bytes", event.value);
      return line + fmt::format("free    {:#x}{}, {}  at {}", event.object.raw, size, text, place());
    }
    case OpKind::SyscallEnter:
      return line + fmt::format("syscall {}", text.empty() ? system_call_title(number) : text);
    case OpKind::SyscallExit:
      return line + fmt::format("syscall {} = {}", text, describe_result(event.value));
    case OpKind::IrqEnter:
      return line + fmt::format("irq     {} at {}", vector_name(static_cast<unsigned>(event.value)), place());
    case OpKind::IrqExit:
      return line + fmt::format("irq     end of {}, back to {}",
                                vector_name(static_cast<unsigned>(event.value)), place());
    case OpKind::Call:
    case OpKind::Return:
      return line + "call    " + function_call(event);
    case OpKind::Fail:
      return line + fmt::format("panic   {}  at {}", text, place());
    case OpKind::Note:
      return line + fmt::format("warning {}  at {}", text, place());
    default:  // LinuxModel does not emit these
      return line + fmt::format("{} {} {}", name(event.op), names_.object(event.object), text);
  }
}

std::string TraceLines::access(const Access& access, uint64_t step, AgentId agent) const {
  const bool stores = access.wrote != 0;
  const std::string modify =
      access.modify() == Modify::None
          ? ""
          : fmt::format(" ({}{})", is_atomic(access.op()) ? "locked " : "", name(access.modify()));
  const std::string value =
      access.size <= 8 ? fmt::format("{:#x}", access.value) : fmt::format("#{:016x}", access.value);
  return start(step, agent) + fmt::format("access  {} {} bytes of {} {} {}{}  at {}",
                                          stores ? "write" : "read", access.size,
                                          names_.object(access.address()), stores ? "<-" : "->", value,
                                          modify, place(access.pc().raw));
}

}  // namespace slalom::vm
