// The whole interleaving as plain text: one line per access and event, in the order of the log. `slalom
// trace` prints it. For a selection with explanations see report/text.h.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

std::string trace_text(const TraceLog& log, const Names& names);

// Writes the same text line by line. A kernel's trace is long: it has columns of fixed width and system calls
// in words, and it is never in memory as text.
void print_trace(std::ostream& out, const TraceLog& log, const Names& names);

}  // namespace slalom
