// Facts about system calls that matter when their results are compared with those of other executions: which
// calls depend on time, return it, or send signals, and which results and data are only names.
//
// A name is a number that the kernel hands out in order of request: a descriptor or a process id. Two
// executions agree if they name the same things, whatever the numbers are.
#pragma once

#include "inputs/call_program.h"

namespace slalom::vm {

// Timeouts that can expire, sleeps and timers. Their results depend on how fast the CPUs are.
bool depends_on_time(const CallProgram& flow, const CallStep& call);
// Writes a time to memory: stat and its family, clocks, resource usage.
bool tells_time(const CallStep& call);
// Sends a signal, which may interrupt another call.
bool sends_signal(const CallStep& call);

enum class ResultIs : uint8_t {
  Value,
  NewDescriptor,
  NewProcess,
  Process,  // an existing one
  Time,
  Listing,  // the size of a part of a folder's list, which is not atomic
};
ResultIs result_is(const CallStep& call);

// Places in a flow's data that hold names: the descriptors of pipes and socket pairs, and copies of results.
// Also lists of folders' entries.
std::vector<DataObject> names_in_data(const CallProgram& flow);

}  // namespace slalom::vm
