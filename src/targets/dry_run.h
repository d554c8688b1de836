// dry_run(): runs the flows of a test one after the other, without a search, so that users see what each call
// returns before they explore anything.
//
// A flow that waits for another one waits, and the next flow runs. Interrupts arrive as soon as their CPU
// accepts them; a timer runs out only if nothing else can happen. A first execution finds the instructions
// with which the flows communicate, as a search does, and a second one counts how often the flows execute
// them. It judges nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "inputs/call_program.h"
#include "machine/machine.h"

namespace slalom {

struct DryRun {
  struct Call {
    int64_t number = 0;
    std::optional<int64_t> result;  // empty if the call did not return
    bool waited = false;            // another flow ran before it returned
    bool operator==(const Call&) const = default;
  };
  struct Flow {
    uint64_t instructions = 0;
    uint64_t choice_points = 0;  // where a search may switch away from this flow
    std::vector<Call> calls;     // a list's calls, or those that a program has made
  };
  std::vector<Flow> flows;
  Outcome outcome;
};

// `machine` is a kernel under test. `flows` has a list for each flow; nullopt if the flow is a program.
// `inputs` are those of a search; its places come from the first execution.
DryRun dry_run(Machine& machine, const std::vector<std::optional<CallProgram>>& flows, const Inputs& inputs);

}  // namespace slalom
