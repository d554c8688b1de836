// Rehearsal: records one execution in the default order, so that it can be compared with another one. If two
// differ, the body is not the same every time: something outlives its executions.
#pragma once

#include <string>

#include "explore/event_sequence.h"
#include "machine/machine.h"

namespace slalom::checking {

EventSequence rehearse(Machine& machine, const Inputs& inputs);
// Returns a hint for the user; empty if the executions are equal.
std::string advice(const EventSequence& first, const EventSequence& second, const Names& names);

}  // namespace slalom::checking
