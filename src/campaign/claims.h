// Claims: what a search may claim. Only this file decides whether a search has *exhausted* its target, which
// caveats the claim has, and what the exit code says.
//
// A search has exhausted its target if the strategy has nothing left to execute and no caveat refutes the
// word. Every caveat that limits the claim stands in the same sentence. The ways in which an execution can
// end, the limits, and the gaps in what is seen or controlled are enumerators or alternatives that are
// visited without a default. A new one does not compile until this file handles it.
//
// Not for what a strategy knows of its own work (Strategy::coverage), nor for how results look (cli/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "campaign/caveat.h"
#include "campaign/job.h"
#include "explore/explorer.h"
#include "trace/sight.h"

namespace slalom {

// Everything that a claim depends on, as values.
struct ClaimFacts {
  const ExploreResult& explored;
  ChoicePolicy policy;
  uint64_t max_steps = 0;
  bool adapts = false;          // the strategy also switches where later executions turn out to conflict
  bool restarts = false;        // the strategy starts again if races show new places
  bool looks_for_races = true;  // a detector detects data races
  bool learns = false;          // the places to switch were learned from executions
  uint64_t learned_places = 0;  // number of such places in all
  std::string communicate;      // the agents that communicate: "the flows", "threads"
  std::string scope;            // the part that the search is about; empty: the whole target
  Sight sight;
  std::vector<UncontrolledAct> uncontrolled;
  uint64_t unpinned_threads = 0;
  std::vector<std::string> not_compared;
  std::vector<Caveat> standing;  // caveats of the target's configuration: Contexts, IdleTimeouts
  uint64_t most_places = 0;      // the most places at which the target can switch; 0 means unlimited
  // The options that allow more, as the user knows them.
  std::string more_steps = "--max-steps", everywhere = "--choices everywhere";
};

struct Claim {
  bool exhausted = false;
  std::vector<Caveat> caveats;  // empty only if everything was executed
  std::string statement;        // one sentence, or the sentences of sampling strategies
  std::string no_end;           // why no execution reached its end, and what to do; empty if one did

  std::string in_words() const;  // "exhausted: every schedule was executed"
 private:
  friend Claim make_claim(const ClaimFacts&);
  bool scoped_ = false;
};
Claim make_claim(const ClaimFacts& facts);

// The meaning of the exit code.
enum class Conclusion : uint8_t { NothingFound, Found, NothingExecuted };
// `found`: whether a finding counts. `expected`: whether the findings are those that the target's file
// expects; empty if the user did not ask.
Conclusion conclude(const Claim& claim, bool found, std::optional<bool> expected);

}  // namespace slalom
