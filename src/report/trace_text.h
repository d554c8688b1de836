// The whole interleaving as plain text: one line per access and event, in the order of the log. `slalom
// trace` prints it. For a selection with explanations see report/text.h.
#pragma once

#include <functional>
#include <iosfwd>

#include "base/result.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// Replays the whole trace into a sink. It is called several times: what a line needs to know of the others
// (the widths of columns, the names of heap objects) takes passes of its own.
using TraceSource = std::function<Result<void>(EventSink& sink)>;

// Writes the text line by line; neither trace nor text is ever in memory. A kernel's trace has columns of
// fixed width and system calls in words.
Result<void> print_trace(std::ostream& out, const TraceSource& source, const Names& names);
void print_trace(std::ostream& out, const TraceLog& log, const Names& names);

}  // namespace slalom
