// The section of a text report that tells the schedule: where it switches, what it chooses, how many
// preemptions it has, and whether it is known to be minimal.
#pragma once

#include "report/core/interleaving.h"
#include "report/core/page.h"
#include "report/text.h"

namespace slalom {

struct ScheduleFacts {
  const Finding& finding;
  const Names& names;
  const TextOptions& options;
  const Interleaving& all;  // without operations if the target is a kernel
  bool of_kernel;
  bool log_follows;  // the log's switches are those of the schedule
};

void add_schedule_section(const ScheduleFacts& facts, Page& page);

}  // namespace slalom
