// run_campaign: a whole search as a user asks for it: explore on all workers, then for every bug found shrink
// it, replay it, and keep it with its report. Saves itself while it runs, if asked, and goes on where a saved
// search stopped.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "campaign/job.h"
#include "campaign/target.h"
#include "explore/explorer.h"
#include "finding/finding.h"
#include "finding/signing_key.h"
#include "report/text.h"
#include "trace/trace_log.h"

namespace slalom {

struct CampaignOptions {
  uint64_t schedules = 0;
  double seconds = 0;  // for everything: looking, searching, shrinking and replaying
  unsigned workers = 1;
  bool checkpoints = true;
  ExploreOptions::Verify verify = ExploreOptions::Verify::No;
  ExploreOptions::Until until = ExploreOptions::Until::Done;
  bool shrink = true;
  // Which findings are shrunk and replayed. The others are listed as they were found.
  enum class Prove : uint8_t { Failures, All } prove = Prove::All;
  bool races_count = true;              // as findings, where that matters to the caller
  uint64_t shrink_executions = 50'000;  // most that shrinking one finding may take
  uint32_t replays = 10;
  std::filesystem::path store = "slalom-findings";  // empty: keep nothing
  std::shared_ptr<const SigningKey> key;            // signs what is kept; nullptr: unsigned
  std::filesystem::path state;                      // empty: not resumable
  TextOptions report;                               // how reports look; the kept ones are always plain
  // Has the user had enough? Asked by all workers while they execute, and stays true; null: never. The search
  // then ends at the end of its round if that comes soon, so that it can be saved, else in the middle of it.
  std::function<bool()> stop;
};

struct Progress {
  const ExploreResult& result;
  Coverage coverage;
  double seconds = 0;
  uint64_t schedules = 0;  // the budget of the search, in executions; 0: none
  enum class Doing : uint8_t { Searching, Shrinking, Replaying } doing = Doing::Searching;
  size_t finding = 0;           // how many were finished before the one that is at hand,
  size_t findings = 0;          // in all
  uint32_t replays = 0;         // made of that one,
  uint32_t replays_wanted = 0;  // in all
  double time = 0;              // the budget for everything, in seconds; 0: none
};

struct CampaignResult {
  ExploreResult explored;
  Claim claim;
  std::vector<UncontrolledAct> uncontrolled;  // what the target did, also in earlier runs of the same search
  struct Kept {
    Finding finding;
    std::filesystem::path capsule;  // empty: not kept
    std::string report;
    CutShort shrinking = CutShort::No, replaying = CutShort::No;  // why it ended early
  };
  std::vector<Kept> findings;  // failures first, then races, then suspicions
  double seconds = 0;
  double search_cpu_seconds = 0;                           // of all workers together, in the search alone
  std::vector<std::pair<std::string, double>> statistics;  // of the search alone (Target::statistics)
  uint64_t communication_points = 0;  // instructions at which it switched, of a target that learns them
  uint64_t resumed_tasks = 0;         // made by earlier runs of the same search
  std::optional<Error> unkept;        // why findings have no capsule, although they should: a full disk
  std::optional<Error> unsaved;       // why the search cannot go on later, although it should
};

// `progress` is called a few times a second, and before each replay; returning false ends the search with
// what was found so far; so does the end of options.seconds. All of that is kept: each failure is replayed
// once, for its report, and nothing else is done.
Result<CampaignResult> run_campaign(const Target& target, const Job& job, const CampaignOptions& options,
                                    const std::function<bool(const Progress&)>& progress);

// How the leaving agent stood at each switch of the execution's schedule; needs recorded choices.
std::vector<ChoiceKind> switch_kinds(const Execution& execution);

// What a replay of a finding's schedule shows.
struct Replay {
  Execution execution;
  std::optional<Verdict> verdict;         // with the finding's title
  std::optional<std::string> divergence;  // where it went another way
  std::vector<std::string> calls;         // that failed otherwise, a sentence each
  bool another_course = false;            // its operations, or their order, have another digest
  bool same() const { return verdict.has_value() && !divergence; }
};
Result<Replay> replay_finding(const Target& target, const Finding& finding, const ChoicePolicy& policy,
                              TraceLog* log);

}  // namespace slalom
