// Finisher: shrinks, replays and keeps each finding after the search, with its report. It uses one machine
// and has a time limit.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "campaign/campaign.h"
#include "detect/detector_set.h"
#include "finding/store.h"

namespace slalom {

// Called once per search, so that all its machines recognise the same things.
Result<MachineUse> machine_use(const Job& job, const CampaignOptions& options);

class Finisher {
 public:
  using Clock = std::chrono::steady_clock;
  // Called now and then with the current work, and before each replay. Returning true means that the user
  // wants to stop.
  using Enough = std::function<bool(Progress::Doing doing, uint32_t replays, uint32_t wanted)>;
  // The time at which work on a finding ends: on shrinking it, and on all of it.
  struct TimeLimit {
    Clock::time_point shrinking = Clock::time_point::max();
    Clock::time_point all = Clock::time_point::max();
  };

  // `target`, `job` and `options` must outlive the Finisher.
  static Result<Finisher> make(const Target& target, const Job& job, const CampaignOptions& options);

  // Call it after the search, which no longer needs its machines.
  Result<void> take_machine();
  // Adds places to switch at that the search has learned.
  void learn(const std::vector<Place>& places);
  // Returns whether to shrink and replay the finding, not only list it.
  bool proves(const Verdict& verdict) const {
    return options_.prove == CampaignOptions::Prove::All || verdict.severity == Severity::Failure;
  }
  Result<CampaignResult::Kept> finish(const Found& found, const Enough& enough, const TimeLimit& limit);
  const std::optional<Error>& unkept() const { return unkept_; }

 private:
  Finisher(const Target& target, const Job& job, const CampaignOptions& options)
      : target_(target), job_(job), policy_(job.policy), options_(options) {}

  using Early = std::function<CutShort(Progress::Doing doing, uint32_t replays)>;
  struct Replays {
    TraceLog log;  // of the first replay
    std::vector<ChoiceKind> kinds;
    std::vector<std::string> differences;  // of the first replay that was not the same
  };
  Finding finding_of(const Found& found) const;
  uint32_t replays_wanted(const Found& found) const;
  void shrink(CampaignResult::Kept& kept, const Early& early);
  Result<void> replay(CampaignResult::Kept& kept, uint32_t wanted, const Early& early, Replays& replays);
  void keep(CampaignResult::Kept& kept, Replays replays);

  const Target& target_;
  const Job& job_;
  ChoicePolicy policy_;
  const CampaignOptions& options_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<DetectorSet> detectors_;
  std::optional<FindingStore> store_;
  std::optional<Error> unkept_;
};

}  // namespace slalom
