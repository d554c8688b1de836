#include "vm/replay/natural_run.h"

#include <algorithm>
#include <utility>

namespace slalom::vm {

PcStop NaturalRun::forward(uint64_t instructions) {
  const uint64_t from = pc_.executed();
  while (next_typed_ < typed_.size() && typed_[next_typed_].at <= from)
    pc_.devices().push_console_input(typed_[next_typed_++].text);
  if (next_typed_ < typed_.size()) instructions = std::min(instructions, typed_[next_typed_].at - from);
  const bool again = from < furthest_;
  if (again) instructions = std::min(instructions, furthest_ - from);
  const PcStop stop = pc_.run(instructions);
  const std::string printed = pc_.devices().take_console_output();
  if (!again) output_ += printed;
  furthest_ = std::max(furthest_, pc_.executed());
  return stop;
}

Pc::Checkpoint NaturalRun::take() {
  const Pc::Checkpoint id = pc_.take();
  next_typed_at_[id] = next_typed_;
  return id;
}

void NaturalRun::restore(Pc::Checkpoint id) {
  pc_.restore(id);
  next_typed_ = next_typed_at_.at(id);
}

void NaturalRun::drop(Pc::Checkpoint id) {
  pc_.drop(id);
  next_typed_at_.erase(id);
}

void NaturalRun::fork() {
  typed_.resize(next_typed_);
  furthest_ = pc_.executed();
}

void NaturalRun::type(const std::string& text) {
  if (!text.empty()) typed_.push_back({.at = pc_.executed(), .text = text});
}

std::string NaturalRun::take_output() {
  return std::exchange(output_, {});
}

}  // namespace slalom::vm
