// The words for operations, values and outcomes.
#include <fmt/ranges.h>

#include "report/core/interleaving.h"
#include "report/core/summary.h"

namespace slalom {

std::string_view access_word(OpKind kind) {
  switch (kind) {
    case OpKind::Load:
      return "read";
    case OpKind::Store:
      return "write";
    case OpKind::AtomicLoad:
      return "atomic read";
    case OpKind::AtomicStore:
      return "atomic write";
    case OpKind::ReadModifyWrite:
      return "atomic update";
    case OpKind::CompareExchange:
      return "compare-exchange";
    default:
      return "";
  }
}

std::string describe(OpKind kind, ObjectId object, AgentId other, const Names& names) {
  const bool is_whole = kind == OpKind::Alloc || kind == OpKind::Free || kind == OpKind::HeapUse;
  const auto with_object = [&](std::string_view verb) {
    return fmt::format("{} {}", verb, printable(is_whole ? names.whole(object) : names.object(object)));
  };
  const auto with_agent = [&](std::string_view verb) {
    return other ? fmt::format("{} {}", verb, printable(names.agent(other))) : with_object(verb);
  };
  switch (kind) {
    case OpKind::ReadLock:
      return with_object("read-lock");
    case OpKind::ReadUnlock:
      return with_object("read-unlock");
    case OpKind::WriteLock:
      return with_object("write-lock");
    case OpKind::WriteUnlock:
      return with_object("write-unlock");
    case OpKind::Wait:
      return with_object("wait for");
    case OpKind::SemWait:
      return with_object("sem wait");
    case OpKind::SemPost:
      return with_object("sem post");
    case OpKind::BarrierArrive:
      return with_object("arrive at");
    case OpKind::Spawn:
      return with_agent("spawn");
    case OpKind::Join:
      return with_agent("join");
    case OpKind::Exit:
      return "ends";
    case OpKind::CpuUse:  // shown only where an interrupt never ends
      return "cannot go on";
    case OpKind::IrqEnter:
      return "interrupt begins";
    case OpKind::IrqExit:
      return "interrupt ends";
    case OpKind::IrqMask:
      return "mask interrupts";
    case OpKind::IrqUnmask:
      return "unmask interrupts";
    case OpKind::IrqRaise:
      return with_object("raise");
    case OpKind::IrqTake:
      return with_object("take");
    case OpKind::TimerArm:
      return with_object("arm");
    case OpKind::TimerCancel:
      return with_object("cancel");
    case OpKind::TimerFire:
      return "timer fires";
    case OpKind::None:
    case OpKind::Yield:
    case OpKind::GoOn:
    case OpKind::Choose:
    case OpKind::Note:
    case OpKind::Fail:
      return std::string(name(kind));
    default:
      return with_object(name(kind));
  }
}

bool destroys(const Event& event) {
  switch (event.op) {
    case OpKind::Unlock:
    case OpKind::WriteUnlock:
    case OpKind::Broadcast:
    case OpKind::SemPost:
    case OpKind::BarrierArrive:
      return event.value == kDestroys;
    default:
      return false;
  }
}

std::string value_text(uint64_t value, uint32_t size) {
  const int shift = size > 0 && size < 8 ? 64 - 8 * static_cast<int>(size) : 0;
  const auto number = static_cast<int64_t>(value << shift) >> shift;
  constexpr int64_t kPlain = 1'000'000'000;
  if (number > -kPlain && number < kPlain) return fmt::format("{}", number);
  return fmt::format("{:#x}", value << shift >> shift);
}

std::string outcome_text(const Outcome& outcome, const Names& names) {
  const auto agents = [&](const std::vector<AgentId>& list) {
    std::vector<std::string> texts;
    for (AgentId agent : list) texts.push_back(printable(names.agent(agent)));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return std::visit(
      Overloaded{
          [](const Exited&) { return std::string("all have ended"); },
          [&](const Deadlocked& deadlock) {
            return fmt::format("deadlock: nothing can run, {} {}", plural(deadlock.waiting.size(), "agent"),
                               deadlock.waiting.size() == 1 ? "waits" : "wait");
          },
          [](const Faulted& fault) {
            return fmt::format("{}: {}",
                               fault.kind == Faulted::Kind::Assertion ? "assertion failed" : "crash",
                               printable(fault.what.substr(0, fault.what.find('\n'))));
          },
          [&](const LimitReached& limit) {
            const bool notes = limit.limit == LimitReached::Limit::Notes;
            return fmt::format(
                "stopped at the limit of {}{}", notes ? "text in notes" : plural(limit.steps, "step"),
                limit.enabled.empty() ? std::string()
                                      : fmt::format("; still running: {}", agents(limit.enabled)));
          },
          [](const Abandoned& abandoned) { return fmt::format("abandoned: {}", printable(abandoned.why)); },
          [](const ToolError& error) { return fmt::format("error of slalom: {}", printable(error.message)); },
      },
      outcome);
}

}  // namespace slalom
