// Finisher: what a campaign does with each finding once the search is over: shrinks it, replays it, and keeps
// it with its report. One machine does it all, and there is an end to the time.
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

// Decided once for a search: all its machines recognise the same.
Result<MachineUse> machine_use(const Job& job, const CampaignOptions& options);

class Finisher {
 public:
  using Clock = std::chrono::steady_clock;
  // Has the user had enough? Called now and then with what is being done, before each replay, too.
  using Enough = std::function<bool(Progress::Doing doing, uint32_t replays, uint32_t wanted)>;
  // When work on a finding ends: on shrinking it, and on all of it.
  struct TimeLimit {
    Clock::time_point shrinking = Clock::time_point::max();
    Clock::time_point all = Clock::time_point::max();
  };

  // `target`, `job` and `options` must outlive it.
  static Result<Finisher> make(const Target& target, const Job& job, const CampaignOptions& options);

  // After the search, which has no use for its machines any more.
  Result<void> take_machine();
  // Places to switch at that the search has learned.
  void learn(const std::vector<Place>& places);
  // Is this one shrunk and replayed, or only listed?
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
    TraceLog log;  // of the first
    std::vector<ChoiceKind> kinds;
    std::vector<std::string> differences;  // of the first that was not the same
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
