// The whole interleaving as plain text, one line per access and event just as they were logged: what
// `slalom trace` prints. For a selection with explanations see report/text.h.
#pragma once

#include <string>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

std::string trace_text(const TraceLog& log, const Names& names);

}  // namespace slalom
