#include "check/rehearsal.h"

#include <fmt/format.h>

#include "explore/strategy.h"

namespace slalom::checking {

EventSequence rehearse(Machine& machine, const Inputs& inputs) {
  EventSequence result;
  if (!machine.reset(inputs).ok()) return result;
  Stop stop = machine.start(result);
  while (const ChoicePoint* point = std::get_if<ChoicePoint>(&stop))
    stop = machine.resume(point->kind == ChoiceKind::Data
                              ? Decision{.next = point->current}
                              : Decision{.next = next_in_order(*point, point->options()).agent});
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
