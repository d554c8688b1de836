#include "explore/event_sequence.h"

#include <fmt/format.h>

#include <algorithm>

namespace slalom {

void EventSequence::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  for (const Access& access : accesses) {
    if (items_.size() >= kMaxItems) return;
    const int64_t value = access.op() == OpKind::Store ? 0 : static_cast<int64_t>(access.value);
    items_.push_back({header.agent, access.op(), access.address(), access.pc(), value});
  }
}

void EventSequence::on_event(const Event& event) {
  if (items_.size() < kMaxItems)
    items_.push_back({event.agent, event.op, event.object, event.pc, event.value});
}

std::string EventSequence::in_words(size_t at, const Names& names) const {
  if (at >= items_.size()) return "it was over";
  const Item& here = items_[at];
  const std::string object = here.object.raw == 0 ? "" : " " + names.object(here.object);
  return fmt::format("{} did: {}{} (value {}) at {}", names.agent(here.agent), name(here.op), object,
                     here.value, names.place(here.pc));
}

std::string EventSequence::difference(const EventSequence& first, const EventSequence& second,
                                      const Names& names) {
  const auto [a, b] =
      std::mismatch(first.items_.begin(), first.items_.end(), second.items_.begin(), second.items_.end());
  if (a == first.items_.end() && b == second.items_.end()) return {};
  const auto at = static_cast<size_t>(a - first.items_.begin());
  return fmt::format("in the first run {}; in the second {}", first.in_words(at, names),
                     second.in_words(at, names));
}

}  // namespace slalom
