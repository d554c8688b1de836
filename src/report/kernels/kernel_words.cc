// The words of a kernel's report: accesses, orders, and console text.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "report/kernels/kernel_relevance.h"
#include "report/kernels/kernel_timeline.h"

namespace slalom {
namespace {

// Pointers to functions and variables, but no error codes.
constexpr uint64_t kImage = 0xffffffff80000000, kErrors = 0xfffffffffffff000;
constexpr size_t kFrames = 8;     // of a call trace
constexpr size_t kHeadLines = 4;  // lines before the registers: several of them may say what happened

std::string value_of(const Access& access, const Names& names) {
  // Of values above eight bytes, only a hash is known. It suffices to compare two of them.
  if (access.size > 8) return fmt::format("{} bytes #{:04x}", human_number(access.size), access.value >> 48);
  const std::string text = value_text(access.value, static_cast<uint32_t>(access.size));
  if (access.size < 8 || access.value < kImage || access.value >= kErrors) return text;
  const std::string name = printable(names.object(ObjectId{access.value}));
  return name.starts_with("0x") ? text : fmt::format("{} <{}>", text, name);
}

// Returns "store to", "load of", to precede the object.
std::string_view noun(OpKind kind, bool writes) {
  if (kind == OpKind::ReadModifyWrite || kind == OpKind::CompareExchange) return "atomic update of";
  return writes ? "store to" : "load of";
}

bool overlap(const Access& a, const Access& b) {
  const auto start = [](const Access& one) {
    return one.physical != 0 ? uint64_t{one.physical} : one.address().raw;
  };
  return start(a) < start(b) + b.size && start(b) < start(a) + a.size;
}

std::string point_words(const OrderPoint& point, const KernelOperation* operation, const Names& names) {
  const std::string who = printable(names.agent(point.agent));
  const std::string place = place_and_line(names, point.pc);
  if (operation == nullptr)
    return fmt::format("{} at {}{}", who, place, place.starts_with("0x") ? ", outside the kernel" : "");
  const Access& access = *operation->access;
  return fmt::format("{}'s {} {} at {}", who, noun(access.op(), operation->writes()),
                     printable(names.object(access.address())), place);
}

// Returns the write of the instruction if there is one: other CPUs see the write.
const KernelOperation* strongest(const KernelTrace& trace, size_t i) {
  const KernelOperation* found = &trace.operations[i];
  for (size_t k = i + 1; k < trace.operations.size(); ++k) {
    const KernelOperation& next = trace.operations[k];
    if (next.access == nullptr || next.step != found->step || next.agent != found->agent) break;
    if (next.writes()) found = &next;
  }
  return found;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
}

}  // namespace

std::string access_text(const Access& access, const Access* after, const Names& names) {
  // Calls and returns are among the accesses. Their addresses are code.
  if (access.op() == OpKind::Call || access.op() == OpKind::Return)
    return fmt::format("{} {}", access.op() == OpKind::Call ? "calls" : "returns to",
                       printable(names.place(Place{access.address().raw})));
  const std::string object = printable(names.object(access.address()));
  if (after != nullptr)
    return fmt::format("{}: read {}, wrote {}", object, value_of(access, names), value_of(*after, names));
  const KernelOperation operation{{}, {}, &access, nullptr};
  if (access.op() == OpKind::CompareExchange)
    return fmt::format("{}: was {}, {}", object, value_of(access, names),
                       access.wrote ? "swapped" : "not swapped");
  return fmt::format("{}: {} {}", object, operation.writes() ? "wrote" : "read", value_of(access, names));
}

KernelOrder kernel_order(const OrderConstraint& constraint, const KernelTrace& trace, const Names& names) {
  // A place may occur many times. Choose pairs of accesses to the same memory first, then the nearest pair in
  // this order.
  struct Pair {
    const KernelOperation* before;
    const KernelOperation* after;
    bool meet;
    size_t distance;
  };
  std::optional<Pair> best;
  std::optional<size_t> before;
  const KernelOperation* after_alone = nullptr;
  const KernelOperation* before_alone = nullptr;
  for (size_t i = 0; i < trace.operations.size(); ++i) {
    const KernelOperation& operation = trace.operations[i];
    if (operation.access == nullptr) continue;
    const Place pc = operation.access->pc();
    if (operation.agent == constraint.before.agent && pc == constraint.before.pc) {
      before = i;
      before_alone = strongest(trace, i);
    }
    if (operation.agent != constraint.after.agent || pc != constraint.after.pc) continue;
    const KernelOperation* after = strongest(trace, i);
    if (after_alone == nullptr) after_alone = after;
    if (!before) continue;
    const Pair pair{before_alone, after, overlap(*before_alone->access, *after->access), i - *before};
    if (!best || pair.meet > best->meet || (pair.meet == best->meet && pair.distance < best->distance))
      best = pair;
  }
  const KernelOperation* first = best ? best->before : before_alone;
  const KernelOperation* second = best ? best->after : after_alone;
  const auto is_own = [&](const KernelOperation* operation) {
    return operation != nullptr && is_bookkeeping(names.object(operation->access->address()));
  };
  return {point_words(constraint.before, first, names), point_words(constraint.after, second, names),
          is_own(first) || is_own(second)};
}

std::string console_summary(const std::string& text) {
  if (text.find('\n') == std::string::npos) return text;
  std::istringstream in(text);
  std::string result, line;
  size_t head = 0, frames = 0;
  bool registers = false, stack = false;
  const auto keep = [&](std::string_view indent) {
    result += (result.empty() ? "" : "\n") + std::string(indent) + printable(line);
  };
  while (std::getline(in, line)) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    if (starts_with_any(line, {"RIP:"}) && !registers) {
      keep("");
      registers = true;
    } else if (starts_with_any(line, {"Call Trace:"}) && frames == 0) {
      keep("");
      stack = registers = true;
    } else if (stack && !line.starts_with('<') && !line.starts_with('?')) {
      stack = line.find("+0x") != std::string::npos && ++frames <= kFrames;
      if (stack) keep("  ");
    } else if (!registers && !stack && head < kHeadLines && !line.empty() &&
               !starts_with_any(line, {"------------", "CPU:", "Modules linked in:", "Hardware name:", "#PF:",
                                       "PGD ", "Workqueue:"})) {
      keep("");
      ++head;
    }
  }
  return result;
}

}  // namespace slalom
