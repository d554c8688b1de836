// The whole interleaving as plain text, one line per access and event just as they were logged: what
// `slalom trace` prints. For a selection with explanations see report/text.h.
#pragma once

#include <iosfwd>
#include <string>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

std::string trace_text(const TraceLog& log, const Names& names);

// The same as it is made, line by line. A kernel's trace, which is long, has columns of fixed width, system
// calls in words, and is not held in memory as text.
void print_trace(std::ostream& out, const TraceLog& log, const Names& names);

}  // namespace slalom
