// Job: a search as a value: what to explore, how, and with which detectors. It holds everything that findings
// and counts depend on, and nothing else (no workers, no clocks). It can therefore be queued, saved, and
// compared with a saved search.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "campaign/strategies.h"
#include "finding/finding.h"
#include "trace/choice_policy.h"

namespace slalom {

struct Job {
  TargetId target;
  StrategySpec strategy;
  ChoicePolicy policy;
  uint64_t max_steps = 20'000;
  std::string detectors = "default";
  bool operator==(const Job&) const = default;
};
void encode(ByteWriter& out, const Job& job);
void decode(ByteReader& in, Job& job);

}  // namespace slalom
