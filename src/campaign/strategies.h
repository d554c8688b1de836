// The strategies by name: a table with one row each, from which the command line's help, the parser of
// settings and searches are made. A new strategy is a file in explore/strategies/ and a row in strategies.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "explore/strategy.h"
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
std::vector<StrategyInfo> strategy_catalogue();

// Fails with advice if the settings are unknown or do not fit the policy. `insists`: agents may insist (see
// explore/fairness.h).
Result<std::unique_ptr<Strategy>> make_strategy(const StrategySpec& spec, const ChoicePolicy& policy,
                                                bool insists = false);

}  // namespace slalom
