// Looking: before a search, a few executions in random order show where it should switch, and whether there
// is anything to search.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "campaign/campaign.h"
#include "explore/explorer.h"

namespace slalom {

// Executions that all end as a mistake in the input makes them end: the first of a search.
class FirstEnds {
 public:
  explicit FirstEnds(const Target& target) : target_(target) {}
  void add(const Execution& execution) {
    if (!target_.input_trouble || seen_ == kFirst) return;
    ++seen_;
    trouble_ = target_.input_trouble(execution.outcome);
    if (trouble_.empty()) seen_ = kFirst;  // one is enough that does not
    all_ = seen_ == kFirst && !trouble_.empty();
  }
  bool are_hopeless() const { return all_; }  // asked by all workers
  // Once the search is over, however few it made. What else was found is worth more.
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

// Sets the job's policy: where a kernel's flows communicate; which of a program's atomic operations need no
// switch, and, for strategies that cannot change that while they search, which of its plain accesses do.
// `adapts`: the strategy can. `stop`: the user has had enough.
Result<void> look_first(const Target& target, const CampaignOptions& options, bool adapts,
                        const std::function<bool()>& stop, Job& job);

// Of the accesses that data races are about; sorted.
std::vector<Place> places_of_races(const std::vector<Found>& found);

}  // namespace slalom
