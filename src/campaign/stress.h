// Stress: runs of a target without control, for comparison with searches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "campaign/target.h"

namespace slalom {

struct StressOptions {
  uint64_t runs = 0;
  uint64_t seed = 1;
  std::string detectors;
  unsigned workers = 1;
  std::function<bool()> stop;  // returns true to end early; empty: never
};

struct StressResult {
  uint64_t runs = 0, failures = 0;
  std::map<std::string, uint64_t> titles;  // number of runs with each title
};

// Counts a run that reaches the step limit as a failure. Fails if the target's machines cannot run without
// control (TargetTraits::free_turn).
Result<StressResult> run_stress(const Target& target, const StressOptions& options);

}  // namespace slalom
