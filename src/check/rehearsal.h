// Rehearsal: one execution in the default order, written down so that it can be compared with another one.
// Two that differ mean that the body is not the same every time: something outlives its executions.
#pragma once

#include <string>

#include "explore/event_sequence.h"
#include "machine/machine.h"

namespace slalom::checking {

EventSequence rehearse(Machine& machine, const Inputs& inputs);
// What to tell the user; empty: they are the same.
std::string advice(const EventSequence& first, const EventSequence& second, const Names& names);

}  // namespace slalom::checking
