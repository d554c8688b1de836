// learn_policy: before a search, makes a few executions in random order that show where the search should
// switch, and whether there is anything to search.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "campaign/campaign.h"
#include "explore/explorer.h"

namespace slalom {

// Recognises a mistake in the user's input: the first executions of a search all end in the way that the
// mistake causes.
class FirstOutcomes {
 public:
  explicit FirstOutcomes(const Target& target) : target_(target) {}
  void add(const Execution& execution) {
    if (!target_.reports.input_trouble || seen_ == kFirst) return;
    ++seen_;
    trouble_ = target_.reports.input_trouble(execution.outcome);
    if (trouble_.empty()) seen_ = kFirst;  // one execution without the mistake is enough
    all_ = seen_ == kFirst && !trouble_.empty();
  }
  bool are_hopeless() const { return all_; }  // all workers call it
  // Returns what is wrong with the input after the search, even if it made few executions; empty if nothing
  // is wrong. Other failures matter more, so it is empty too if there are any.
  std::string trouble(const ExploreResult& result) const {
    const bool others = std::ranges::any_of(result.found, [](const Found& found) {
      return found.verdict.severity == Severity::Failure && found.verdict.kind != BugKind::Livelock &&
             found.verdict.kind != BugKind::Assertion;
    });
    return others ? std::string() : trouble_;
  }

 private:
  static constexpr int kFirst = 3;
  const Target& target_;
  int seen_ = 0;
  std::string trouble_;
  std::atomic<bool> all_{false};
};

// Identifies an execution in random order that reached the step limit of learning.
struct LongLook {
  uint64_t seed = 0, index = 0;
};

// Completes the job's policy. For a kernel, it adds the places where the flows communicate. For a program, it
// adds the atomic operations that need no switch and, unless the strategy adapts, the plain accesses that
// need one. `adapts`: the strategy can change its choice points during the search. `stop`: returns true if
// the user wants to stop. Returns the first execution that was cut off, if one was.
Result<std::optional<LongLook>> learn_policy(const Target& target, const CampaignOptions& options,
                                             bool adapts, const std::function<bool()>& stop, Job& job);

// Returns the places of the accesses in all data races, sorted.
std::vector<Place> places_of_races(const std::vector<Found>& found);

}  // namespace slalom
