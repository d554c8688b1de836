// The step limit of a search whose user gave none.
//
// The job's limit is enough for most programs, and an execution that goes on for ever is soon noticed by it.
// Where one that looked was long, the limit is four times the length of the longer of two: that one, and one
// in the default order, without preemptions. Each is made with a growing limit until it ends, or turns out to
// spin. A function of the job alone, so that a search that goes on later finds the same limit.
//
// Not for targets where no execution looks first (campaign/learn_policy.h): for some, the first execution
// changes what later ones find.
#pragma once

#include <functional>

#include "campaign/job.h"
#include "campaign/learn_policy.h"
#include "campaign/target.h"

namespace slalom {

// The length of the longest execution that was made; 0: the job's limit is enough, or no other one is known.
// `stop`: the user has had enough.
Result<uint64_t> find_step_limit(const Target& target, const Job& job, const LongLook& seen,
                                 const std::function<bool()>& stop);
uint64_t step_limit_for(uint64_t length);

}  // namespace slalom
