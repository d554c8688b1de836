// Finds the step limit of a search whose user gave none.
//
// The job's limit is enough for most programs, and soon catches an execution that goes on for ever. If it cut
// off an execution of learning (campaign/learn_policy.h), the limit is four times the length of the longer of
// two executions: that one, and one in the default order, without preemptions. Each is repeated with a
// growing limit until it ends or turns out to spin. The limit depends on the job alone, so that a resumed
// search finds the same limit.
//
// Not for targets without learning: for some of them, the first execution changes what later ones find.
#pragma once

#include <functional>

#include "campaign/job.h"
#include "campaign/learn_policy.h"
#include "campaign/target.h"

namespace slalom {

// Returns the length of the longest of these executions; 0 if the job's limit is enough, or if no other limit
// is known. `stop` returns true if the user wants to stop.
Result<uint64_t> find_step_limit(const Target& target, const Job& job, const LongLook& seen,
                                 const std::function<bool()>& stop);
// Returns the step limit of a search whose longest execution has that length.
uint64_t step_limit_for(uint64_t length);

}  // namespace slalom
