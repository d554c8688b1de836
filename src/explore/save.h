// Encoding of the search's own types for saved searches and job queues. trace/files/serialise.h encodes the
// types of trace/ (schedules, verdicts, policies).
#pragma once

#include "explore/explorer.h"
#include "trace/files/serialise.h"

namespace slalom {

void encode(ByteWriter& out, const Pick& pick);
void decode(ByteReader& in, Pick& pick);
void encode(ByteWriter& out, const Touch& touch);
void decode(ByteReader& in, Touch& touch);
void encode(ByteWriter& out, const Sleeper& sleeper);
void decode(ByteReader& in, Sleeper& sleeper);
// Leaves out verdicts and schedule: only what a strategy needs that has not taken the execution in yet.
void encode(ByteWriter& out, const Execution& execution);
void decode(ByteReader& in, Execution& execution);
void encode(ByteWriter& out, const Task& task);
void decode(ByteReader& in, Task& task);
void encode(ByteWriter& out, const Found& found);
void decode(ByteReader& in, Found& found);

}  // namespace slalom
