#include "explore/happenings.h"

#include <fmt/format.h>

#include <algorithm>

namespace slalom {

void Happenings::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  for (const Access& access : accesses) {
    if (all_.size() >= kMost) return;
    const int64_t value = access.op() == OpKind::Store ? 0 : static_cast<int64_t>(access.value);
    all_.push_back({header.agent, access.op(), access.address(), access.pc(), value});
  }
}

void Happenings::on_event(const Event& event) {
  if (all_.size() < kMost) all_.push_back({event.agent, event.op, event.object, event.pc, event.value});
}

std::string Happenings::in_words(size_t at, const Names& names) const {
  if (at >= all_.size()) return "it was over";
  const Happened& here = all_[at];
  const std::string object = here.object.raw == 0 ? "" : " " + names.object(here.object);
  return fmt::format("{} did: {}{} (value {}) at {}", names.agent(here.agent), name(here.op), object,
                     here.value, names.place(here.pc));
}

std::string Happenings::difference(const Happenings& first, const Happenings& second, const Names& names) {
  const auto [a, b] =
      std::mismatch(first.all_.begin(), first.all_.end(), second.all_.begin(), second.all_.end());
  if (a == first.all_.end() && b == second.all_.end()) return {};
  const auto at = static_cast<size_t>(a - first.all_.begin());
  return fmt::format("in the first run {}; in the second {}", first.in_words(at, names),
                     second.in_words(at, names));
}

}  // namespace slalom
