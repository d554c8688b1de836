// run_campaign: a whole search as a user asks for it. It explores on all workers, then shrinks and replays
// every finding, and keeps it with its report. If asked, it saves itself while it runs, and continues a saved
// search.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "campaign/job.h"
#include "campaign/target.h"
#include "explore/explorer.h"
#include "finding/finding.h"
#include "finding/finding_json.h"
#include "finding/signing_key.h"
#include "report/text.h"
#include "trace/trace_log.h"

namespace slalom {

struct CampaignOptions {
  uint64_t schedules = 0;
  bool finds_step_limit = false;  // if executions are longer than the job's: see campaign/step_limit.h
  double seconds = 0;             // for everything: learning the policy, searching, shrinking and replaying
  unsigned workers = 1;
  bool checkpoints = true;
  ExploreOptions::Verify verify = ExploreOptions::Verify::No;
  ExploreOptions::Until until = ExploreOptions::Until::Done;
  bool shrink = true;
  // The findings to shrink and replay. Other findings are listed as they were found.
  enum class Prove : uint8_t { Failures, All } prove = Prove::All;
  bool races_count = true;              // data races count as findings
  uint64_t shrink_executions = 50'000;  // most executions for shrinking one finding
  uint32_t replays = 10;
  std::filesystem::path store = "slalom-findings";  // empty: keep no findings
  std::shared_ptr<const SigningKey> key;            // signs the kept capsules; nullptr: unsigned
  std::filesystem::path state;                      // file of the saved search; empty: not resumable
  TextOptions report;                               // how reports look; kept reports are always plain
  // All workers call this while they execute. Returning true ends the search: at the end of its round if that
  // comes soon, so that it can be saved, else within the round. Once true, it must stay true. Empty: the user
  // cannot stop the search.
  std::function<bool()> stop;
};

struct Progress {
  const ExploreResult& result;
  Coverage coverage;
  double seconds = 0;
  uint64_t schedules = 0;  // executions that the search may make; 0 means unlimited
  enum class Doing : uint8_t { Searching, Shrinking, Replaying } doing = Doing::Searching;
  size_t finding = 0;           // findings finished before the current one
  size_t findings = 0;          // number of findings
  uint32_t replays = 0;         // replays made of the current finding
  uint32_t replays_wanted = 0;  // replays to make of it
  double time = 0;              // seconds for everything; 0 means unlimited
};

struct CampaignResult {
  ExploreResult explored;
  std::optional<Schedule> first;  // of the first execution that came to an end; empty if none did in this run
  Claim claim;
  std::vector<UncontrolledAct> uncontrolled;  // acts of the target, also in earlier runs of the search
  ComparedResults compared;
  struct Kept {
    Finding finding;
    std::filesystem::path capsule;  // empty if not kept
    std::string report;
    FindingWords words;
    CutShort shrinking = CutShort::No, replaying = CutShort::No;  // why it ended early
  };
  std::vector<Kept> findings;  // ordered: failures, races, suspicions
  uint64_t max_steps = 0;      // of an execution
  uint64_t longest_look = 0;   // the length of the execution from which that follows; 0: it was given
  double seconds = 0;
  double search_cpu_seconds = 0;                           // of all workers together, in the search alone
  std::vector<std::pair<std::string, double>> statistics;  // of the search alone (TargetReports::statistics)
  uint64_t communication_points = 0;  // instructions at which the search switched, if the target learns them
  uint64_t resumed_tasks = 0;         // tasks made by earlier runs of the search
  std::optional<Error> unkept;        // why findings could not be kept (a full disk); empty if they were
  std::optional<Error> unsaved;       // why the search could not be saved; empty if it was
};

// Calls `progress` a few times a second, and before each replay. The search ends early if `progress` returns
// false, or at the end of options.seconds. Findings made so far are then still kept: each failure is replayed
// once, for its report, and nothing else is done.
Result<CampaignResult> run_campaign(const Target& target, const Job& job, const CampaignOptions& options,
                                    const std::function<bool(const Progress&)>& progress);

// Returns the state of the leaving agent at each switch of the execution's schedule. Needs recorded choices.
std::vector<ChoiceKind> switch_kinds(const Execution& execution);

// The result of a replay of a finding's schedule.
struct Replay {
  Execution execution;
  std::optional<Verdict> verdict;         // the verdict with the finding's title; empty if it did not show
  std::optional<std::string> divergence;  // the first difference; empty if there was none
  std::vector<std::string> calls;         // failing calls that differed, a sentence each
  bool another_course = false;            // its operations, or their order, have another digest
  bool same() const { return verdict.has_value() && !divergence; }
};
// Makes the sink that records a replay, which gets everything that detectors get. The names are those of the
// machine that replays; they are valid until the sink has got its end. nullptr records nothing.
using MakeSink = std::function<Result<EventSink*>(const Names& names)>;
Result<Replay> replay_finding(const Target& target, const Finding& finding, const ChoicePolicy& policy,
                              const MakeSink& record);
Result<Replay> replay_finding(const Target& target, const Finding& finding, const ChoicePolicy& policy,
                              TraceLog* log);

}  // namespace slalom
