// What is known of system calls, as far as their results are compared with those of other executions: which
// depend on time, which tell it, which send signals, and which results and data are but names.
//
// A name is a number that the kernel hands out in the order in which it is asked: a descriptor, a process id.
// Two executions agree when they have the same names for the same things, whatever the numbers.
#pragma once

#include "inputs/call_program.h"

namespace slalom::vm {

// A timeout that can run out, sleeping, timers: what comes of these depends on how fast the CPUs are.
bool depends_on_time(const CallProgram& flow, const CallStep& call);
// Writes a time to memory: stat and its family, clocks, usage.
bool tells_time(const CallStep& call);
// By which another call may be interrupted.
bool sends_signal(const CallStep& call);

enum class ResultIs : uint8_t {
  Value,
  NewDescriptor,
  NewProcess,
  Process,  // one that is there
  Time,
};
ResultIs result_is(const CallStep& call);

// Places in a flow's data that hold names: of pipes and pairs of sockets, and copies of results.
std::vector<DataObject> names_in_data(const CallProgram& flow);

}  // namespace slalom::vm
