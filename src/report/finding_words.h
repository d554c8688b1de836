// The words of a finding: its texts with the names that reports use, and what those and its numbers stand
// for.
#pragma once

#include "finding/finding.h"
#include "finding/finding_json.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// `log` is of an execution of the finding's schedule. Of a kernel's nothing changes, nor does any title.
Finding in_words(const Finding& finding, const TraceLog& log, const Names& names);
// Of one whose texts are in words.
FindingWords words_of(const Finding& finding, const TraceLog& log, const Names& names);

}  // namespace slalom
