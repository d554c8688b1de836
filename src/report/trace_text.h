// The whole interleaving as plain text: one line per access and event, in the order of the log. `slalom
// trace` prints it. For a selection with explanations see report/text.h.
#pragma once

#include <functional>
#include <iosfwd>

#include "base/result.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// Replays the whole trace into a sink. print_trace() calls it several times: the widths of columns and the
// names of heap objects take passes of their own.
using TraceSource = std::function<Result<void>(EventSink& sink)>;

// Writes the text line by line, and never holds the whole trace or text in memory. A kernel's trace has
// columns of fixed width and readable system calls.
Result<void> print_trace(std::ostream& out, const TraceSource& source, const Names& names);
void print_trace(std::ostream& out, const TraceLog& log, const Names& names);

}  // namespace slalom
