// Job: a search as a value: what to explore, how, and with which detectors. It holds everything that findings
// and counts depend on, and nothing else (no workers, no clocks). It can therefore be queued, saved, and
// compared with a saved search.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "explore/strategy.h"
#include "finding/finding.h"
#include "trace/choice_policy.h"

namespace slalom {

// A strategy's name and settings: "pct:depth=2,k=40".
struct StrategySpec {
  std::string name = "dpor";
  std::vector<std::pair<std::string, std::string>> settings;
  uint64_t seed = 1;
  bool operator==(const StrategySpec&) const = default;
};
Result<StrategySpec> parse_strategy(const std::string& text, uint64_t seed);
std::string to_text(const StrategySpec& spec);

struct StrategyInfo {
  std::string_view name;
  std::string_view settings;  // "depth=N, k=N"
  std::string_view about;
  bool exhaustive = false;  // ends by itself
};
const std::vector<StrategyInfo>& strategy_catalogue();

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

// Fails with advice if the settings are unknown or do not fit the policy. `insists`: agents may insist (see
// explore/fairness.h).
Result<std::unique_ptr<Strategy>> make_strategy(const StrategySpec& spec, const ChoicePolicy& policy,
                                                bool insists = false);

}  // namespace slalom
