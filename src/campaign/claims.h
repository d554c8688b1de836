// Claims: what a search may claim. This is the only place that decides whether a search has *exhausted* its
// target, which caveats the claim has, and what the exit code says.
//
// A search has exhausted its target if the strategy has nothing left to execute and no caveat takes that word
// away. Every caveat that limits the claim is in the same sentence. Each way in which an execution can end,
// each limit, and each gap in what is seen or controlled is an enumerator or an alternative that is visited
// without a default: a new one does not compile until it is decided here.
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

// What a claim is made from, all of it values.
struct ClaimFacts {
  const ExploreResult& explored;
  ChoicePolicy policy;
  uint64_t max_steps = 0;
  bool adapts = false;          // the strategy switches wherever later executions turn out to conflict
  bool restarts = false;        // ... or begins anew when races show
  bool looks_for_races = true;  // one of the detectors does
  bool learns = false;          // where it switches was learned from executions
  uint64_t learned_places = 0;  // how many such places there are, all told
  std::string communicate;      // by whom: "the flows", "threads"
  std::string scope;            // empty: the whole target
  Sight sight;
  std::vector<UncontrolledAct> uncontrolled;
  uint64_t unpinned_threads = 0;
  std::vector<std::string> not_compared;
  std::vector<Caveat> standing;  // what the target was told to leave out: Contexts, IdleTimeouts
  uint64_t most_places = 0;      // at which it can switch; 0: any number
  // Options that allow more, as the user has them.
  std::string more_steps = "--max-steps", everywhere = "--choices everywhere";
};

struct Claim {
  bool exhausted = false;
  std::vector<Caveat> caveats;  // empty only if everything was executed
  std::string statement;        // one sentence, or those of strategies that sample
  std::string no_end;           // why no execution reached its end, and what to do; empty: one did

  std::string in_words() const;  // "exhausted: every schedule was executed"
 private:
  friend Claim make_claim(const ClaimFacts&);
  bool scoped_ = false;
};
Claim make_claim(const ClaimFacts& facts);

// What the exit code says.
enum class Conclusion : uint8_t { NothingFound, Found, NothingExecuted };
// `found`: something that counts. `expected`: whether that is what the target's file expects, if the user
// asked.
Conclusion conclude(const Claim& claim, bool found, std::optional<bool> expected);

}  // namespace slalom
