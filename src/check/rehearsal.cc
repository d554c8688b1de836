#include "check/rehearsal.h"

#include <fmt/format.h>

#include <algorithm>

#include "explore/strategy.h"

namespace slalom::checking {
namespace {

class Writer final : public EventSink {
 public:
  explicit Writer(Rehearsal& to) : to_(to) {}
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access :
         accesses)  // of a plain store it is the value before, which need not mean anything
      to_.all.push_back({header.agent, access.op(), access.address(), access.pc(),
                         access.op() == OpKind::Store ? 0 : access.value});
  }
  void on_event(const Event& event) override {
    to_.all.push_back({event.agent, event.op, event.object, event.pc, static_cast<uint64_t>(event.value)});
  }
  void on_end(const Outcome&) override {}

 private:
  Rehearsal& to_;
};

std::string in_words(const Rehearsal& rehearsal, size_t at, const Names& names) {
  if (at >= rehearsal.all.size()) return "it was over";
  const Rehearsal::Happened& here = rehearsal.all[at];
  return fmt::format("{} did: {} {} (value {}) at {}", names.agent(here.agent), name(here.op),
                     names.object(here.object), here.value, names.place(here.pc));
}

}  // namespace

Rehearsal rehearse(Machine& machine, const Inputs& inputs) {
  Rehearsal result;
  Writer writer(result);
  if (!machine.reset(inputs).ok()) return result;
  Stop stop = machine.start(writer);
  while (const ChoicePoint* point = std::get_if<ChoicePoint>(&stop))
    stop = machine.resume(point->kind == ChoiceKind::Data
                              ? Decision{.next = point->current}
                              : Decision{.next = next_in_order(*point, point->options()).agent});
  return result;
}

std::string difference(const Rehearsal& first, const Rehearsal& second, const Names& names) {
  const auto [a, b] = std::mismatch(first.all.begin(), first.all.end(), second.all.begin(), second.all.end());
  if (a == first.all.end() && b == second.all.end()) return {};
  const auto at = static_cast<size_t>(a - first.all.begin());
  return fmt::format(
      "two executions with the same schedule differ: in the first {}; in the second {}. Something outlives "
      "an "
      "execution: set what is static or global at the beginning of the body, or make it there",
      in_words(first, at, names), in_words(second, at, names));
}

}  // namespace slalom::checking
