// Rehearsal: one execution in the default order, written down so that it can be compared with another one.
// Two that differ mean that the body is not the same every time: something outlives its executions.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"

namespace slalom::checking {

struct Rehearsal {
  struct Happened {
    AgentId agent;
    OpKind op = OpKind::None;
    ObjectId object;
    Place pc;
    uint64_t value = 0;
    bool operator==(const Happened&) const = default;
  };
  std::vector<Happened> all;
};

Rehearsal rehearse(Machine& machine, const Inputs& inputs);
// What to tell the user; empty: they are the same.
std::string difference(const Rehearsal& first, const Rehearsal& second, const Names& names);

}  // namespace slalom::checking
