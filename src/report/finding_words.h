// Puts the names that reports use into a finding's texts, and says what these names and the finding's numbers
// stand for.
#pragma once

#include "finding/finding.h"
#include "finding/finding_json.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// Returns the finding with readable names. Changes no title, and nothing if the target is a kernel. `log` is
// of an execution of the finding's schedule.
Finding in_words(const Finding& finding, const TraceLog& log, const Names& names);
// Explains the names and places of a finding that in_words() returned.
FindingWords words_of(const Finding& finding, const TraceLog& log, const Names& names);

}  // namespace slalom
