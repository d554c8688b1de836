#include "check/rehearsal.h"

#include <fmt/format.h>

#include "explore/in_order.h"
#include "explore/runner.h"

namespace slalom::checking {

EventSequence rehearse(Machine& machine, const Inputs& inputs) {
  RunnerOptions options;
  options.inputs = inputs;
  options.fair = false;
  options.checkpoint_every = 0;
  EventSequence result;
  Runner runner(machine, nullptr, options);
  runner.set_extra_sink(&result);
  InOrder walker;
  runner.run(Task{}, walker);
  return result;
}

std::string advice(const EventSequence& first, const EventSequence& second, const Names& names) {
  const std::string where = EventSequence::difference(first, second, names);
  if (where.empty()) return {};
  return fmt::format(
      "two executions with the same schedule differ: {}. Something outlives an execution: set what is static "
      "or "
      "global at the beginning of the body, or make it there",
      where);
}

}  // namespace slalom::checking
