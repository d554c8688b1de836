#include "campaign/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "campaign/learn_policy.h"
#include "report/core/summary.h"

namespace slalom {
namespace {

using Kind = Caveat::Kind;
using Weight = Caveat::Weight;
using End = ExploreResult::End;

std::string executions(uint64_t count, std::string_view were = {}) {
  std::string text = plural(count, "execution");
  if (!were.empty()) text += fmt::format(" that {} {}", count == 1 ? "was" : "were", were);
  return text;
}

// Returns "a, b and c".
std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " and " : ", ";
    text += all[i];
  }
  return text;
}

// Shortens a long list to its first items and the number of the others.
std::string shortened(std::vector<std::string> all, std::string_view what) {
  constexpr size_t kMost = 3;
  if (all.size() > kMost) {
    const size_t more = all.size() - kMost;
    all.resize(kMost);
    all.push_back(fmt::format("{} more {}", more, what));
  }
  return listed(all);
}

// Returns whether the strategy's own statement, or the sentence on the end of the search, already says it.
bool is_said_elsewhere(Kind kind) {
  switch (kind) {
    case Kind::ScheduleLimit:
    case Kind::TimeLimit:
    case Kind::Interrupted:
    case Kind::FirstFailure:
    case Kind::Sampled:
    case Kind::Bound:
    case Kind::Fairness:
    case Kind::Scope:
      return true;
    case Kind::StepLimit:
    case Kind::NotesLimit:
    case Kind::CheckLimit:
    case Kind::Unfinished:
    case Kind::WaitsGuessed:
    case Kind::NotRepeated:
    case Kind::Failed:
    case Kind::BehindFailures:
    case Kind::BlockedOnly:
    case Kind::LearnedPlaces:
    case Kind::LateRaces:
    case Kind::LateAtomics:
    case Kind::RacesIgnored:
    case Kind::TooManyPlaces:
    case Kind::Contexts:
    case Kind::IdleTimeouts:
    case Kind::AccessesNotSeen:
    case Kind::AccessesPartlySeen:
    case Kind::LibrariesNotSeen:
    case Kind::Uncontrolled:
    case Kind::UnpinnedThreads:
    case Kind::SerialOrders:
      return false;
  }
  return false;
}

class Claimant {
 public:
  explicit Claimant(const ClaimFacts& facts) : facts_(facts), explored_(facts.explored) {}

  std::vector<Caveat> caveats() {
    end_of_search();
    for (size_t i = 0; i < LimitReached::kLimits; ++i) limit(static_cast<LimitReached::Limit>(i));
    for (size_t i = 0; i < Abandoned::kReasons; ++i) abandoned(static_cast<Abandoned::Reason>(i));
    guesses();
    if (explored_.diverged > 0)
      add(Kind::NotRepeated,
          fmt::format("what follows in {}", executions(explored_.diverged, "not the same when repeated")));
    if (explored_.failed > 0)
      add(Kind::Failed, fmt::format("what {} would have shown",
                                    executions(explored_.failed, "kept from running by errors")));
    // Nothing is hidden from a search that has executed everything.
    if (2 * explored_.broken > explored_.executions && !explored_.coverage.exhausted &&
        explored_.end != End::FirstFailure)
      add(Kind::BehindFailures, fmt::format("what comes after the failures that ended {} of {} executions",
                                            explored_.broken, explored_.executions));
    switches();
    restrictions();
    sight();
    if (std::ranges::any_of(facts_.uncontrolled, &UncontrolledAct::leaves_orders_out))
      add(Kind::Uncontrolled, "what the target does that is not controlled (the warnings say what)");
    if (facts_.unpinned_threads > 0)
      add(Kind::UnpinnedThreads,
          fmt::format("other moments for {} of the kernel, which cannot be pinned to a CPU",
                      plural(facts_.unpinned_threads, "thread")));
    for (const std::string& what : facts_.not_compared) add(Kind::SerialOrders, what);
    return std::move(caveats_);
  }

 private:
  void add(Kind kind, std::string text) { caveats_.push_back({kind, std::move(text)}); }

  void end_of_search() {
    const Coverage& coverage = explored_.coverage;
    if (coverage.exhausted) {
      if (!coverage.bound.empty())
        add(Kind::Bound,
            fmt::format("schedules with more {} than {}", coverage.bound, coverage.completed.value_or(0)));
      if (coverage.fair_only)
        add(Kind::Fairness, "unfair schedules: who yields in a loop gives way to the others");
      return;
    }
    switch (explored_.end) {
      case End::SpaceExplored:
        return add(Kind::Sampled, "schedules that the strategy did not draw");
      case End::ScheduleLimit:
        return add(Kind::ScheduleLimit,
                   fmt::format("schedules beyond the first {}", human_number(explored_.tasks)));
      case End::TimeLimit:
        return add(Kind::TimeLimit, "schedules for which the time was too short");
      case End::Interrupted:
        return add(Kind::Interrupted, "schedules that an interrupt left out");
      case End::FirstFailure:
        return add(Kind::FirstFailure, "schedules after the first failure");
      case End::Failed:
        return;  // all executions have failed: see Failed
    }
  }

  void limit(LimitReached::Limit limit) {
    const uint64_t count = explored_.limits[static_cast<size_t>(limit)];
    if (count == 0) return;
    switch (limit) {
      case LimitReached::Limit::Steps:
        return add(Kind::StepLimit,
                   fmt::format("what follows in {} after {} steps ({})", executions(count, "cut off"),
                               human_number(facts_.max_steps), facts_.more_steps));
      case LimitReached::Limit::Notes:
        return add(Kind::NotesLimit, fmt::format("what follows in {}, since the target notes too much text",
                                                 executions(count, "cut off")));
      case LimitReached::Limit::Check:
        return add(Kind::CheckLimit,
                   fmt::format("what the check would say of {}", executions(count, "cut off in it")));
    }
  }

  void abandoned(Abandoned::Reason reason) {
    const uint64_t count = explored_.abandoned[static_cast<size_t>(reason)];
    if (count == 0) return;
    switch (reason) {
      case Abandoned::Reason::Redundant:
        return;  // a proof: another execution does everything that could follow
      case Abandoned::Reason::NotPossible:
        return;  // a proof too, unless the machine guesses which agents can run: see guesses()
      case Abandoned::Reason::Unfinished:
        return add(Kind::Unfinished, fmt::format("what follows in {}", executions(count, "given up")));
    }
  }

  // If the machine guesses which agents wait, then sleeping agents and agents that cannot run are guesses
  // too.
  void guesses() {
    if (explored_.guessed == 0) return;
    std::string text = fmt::format("orders in which a CPU that spins goes on (it was taken to wait in {}",
                                   executions(explored_.guessed));
    if (explored_.blocked > 0)
      text += fmt::format("; {} abandoned)",
                          explored_.blocked == 1 ? "1 was" : human_number(explored_.blocked) + " were");
    else
      text += ")";
    add(Kind::WaitsGuessed, std::move(text));
  }

  void switches() {
    using Where = ChoicePolicy::Where;
    // Without preemptions, the places of preemptions do not matter.
    const Coverage& coverage = explored_.coverage;
    if (coverage.exhausted && coverage.bound == "preemptions" && coverage.completed == 0) return;
    const bool follows = facts_.adapts || facts_.restarts;
    switch (facts_.policy.where) {
      case Where::Everywhere:
        break;
      case Where::Nowhere:
        if (facts_.learns)
          add(Kind::LearnedPlaces,
              fmt::format("switches at instructions by which {} were not seen to communicate",
                          facts_.communicate));
        else
          add(Kind::BlockedOnly,
              fmt::format("switches where no agent blocks, yields or ends ({})", facts_.everywhere));
        break;
      case Where::Sync:
        if (facts_.sight.extent == Sight::Extent::Nothing) break;
        if (!follows && !std::ranges::includes(facts_.policy.places, places_of_races(explored_.found)))
          add(Kind::LateRaces,
              fmt::format("switches at accesses that were seen to race only during the search ({})",
                          facts_.everywhere));
        if (!facts_.adapts && !facts_.looks_for_races)
          add(Kind::RacesIgnored,
              fmt::format("switches at accesses that race: no detector looks for races ({})",
                          facts_.everywhere));
        break;
    }
    if (!follows && !explored_.learned.empty())
      add(Kind::LateAtomics,
          fmt::format("switches at atomic operations that were taken to be always ordered ({})",
                      facts_.everywhere));
    const size_t places = facts_.policy.places.size() + explored_.learned.size();
    if (facts_.policy.where != Where::Everywhere && facts_.most_places > 0 && places > facts_.most_places)
      add(Kind::TooManyPlaces,
          fmt::format("switches at {} that are too many to be told apart ({})",
                      plural(places - facts_.most_places, "access", "accesses"), facts_.everywhere));
  }

  void restrictions() {
    if (!facts_.scope.empty()) add(Kind::Scope, fmt::format("orders outside of {}", facts_.scope));
    for (const Caveat& caveat : facts_.standing) caveats_.push_back(caveat);
  }

  void sight() {
    switch (facts_.sight.extent) {
      case Sight::Extent::Everything:
        break;
      case Sight::Extent::Parts:
        add(Kind::AccessesPartlySeen,
            fmt::format("orders of memory accesses in {}, not seen without -fsanitize=thread",
                        shortened(facts_.sight.unseen, "files")));
        break;
      case Sight::Extent::Nothing:
        add(Kind::AccessesNotSeen,
            "orders of memory accesses, which are not seen (build the program with -fsanitize=thread)");
        break;
    }
    if (facts_.sight.extent != Sight::Extent::Nothing && !facts_.sight.libraries.empty())
      add(Kind::LibrariesNotSeen,
          fmt::format("orders of memory accesses inside {}", shortened(facts_.sight.libraries, "libraries")));
  }

  const ClaimFacts& facts_;
  const ExploreResult& explored_;
  std::vector<Caveat> caveats_;
};

// Returns why no execution reached its end; empty if one did.
std::string why_no_end(const ClaimFacts& facts) {
  const ExploreResult& r = facts.explored;
  if (r.executions > 0) return {};
  const std::string none = "no execution reached its end: ";
  const std::string all =
      none + (r.tasks == 1 ? "it was" : fmt::format("all {} were", human_number(r.tasks)));
  const uint64_t most = std::max({r.truncated, r.failed, r.diverged, r.blocked});
  if (most == 0) {
    switch (r.end) {
      case End::TimeLimit:
        return none + "the time was over; give the search more time";
      case End::Interrupted:
        return none + "the search was interrupted";
      case End::SpaceExplored:
      case End::ScheduleLimit:
      case End::FirstFailure:
      case End::Failed:
        return none + "none was made";
    }
  }
  if (r.failed == most) return r.trouble.empty() ? all + " ended by an error" : r.trouble.front();
  if (r.truncated == most) {
    if (r.limits[static_cast<size_t>(LimitReached::Limit::Check)] > r.truncated / 2)
      return fmt::format("{} cut off in its check, which does not end", all);
    return fmt::format("{} cut off after {} steps; allow more with {}, or let the target do less",
                       r.tasks == r.truncated ? all : none + executions(r.truncated) + " were",
                       human_number(facts.max_steps), facts.more_steps);
  }
  if (r.diverged == most)
    return fmt::format("{} not the same when repeated; the target does something that is not controlled",
                       r.tasks == r.diverged ? all : none + executions(r.diverged) + " were");
  return fmt::format("{} given up", r.tasks == r.blocked ? all : none + executions(r.blocked) + " were");
}

}  // namespace

Claim make_claim(const ClaimFacts& facts) {
  const Coverage& coverage = facts.explored.coverage;
  Claim claim;
  claim.caveats = Claimant(facts).caveats();
  claim.no_end = why_no_end(facts);
  claim.scoped_ = !facts.scope.empty();
  claim.exhausted = coverage.exhausted && claim.no_end.empty() &&
                    std::ranges::none_of(claim.caveats, [](const Caveat& one) {
                      return weight_of(one.kind) == Weight::Refutes;
                    });
  if (!claim.no_end.empty()) {
    claim.statement = "nothing: " + claim.no_end;
    return claim;
  }
  std::string& words = claim.statement;
  words = coverage.statement;
  if (claim.scoped_) words += fmt::format(", of those in {} and what they call", facts.scope);
  const bool sentences = words.ends_with('.');  // as samplers write them
  if (facts.learns && facts.learned_places > 0)
    words += fmt::format("{} {} at {} by which {} were seen to communicate{}", sentences ? "" : ",",
                         sentences ? "Switches" : "switching", plural(facts.learned_places, "instruction"),
                         facts.communicate, sentences ? "." : "");
  std::vector<std::string> left_out;
  for (const Caveat& caveat : claim.caveats) {
    const Weight weight = weight_of(caveat.kind);
    // A statement that does not claim everything need not say what limits the claim.
    const bool matters = weight == Weight::Refutes || (weight == Weight::Qualifies && coverage.exhausted);
    if (matters && !is_said_elsewhere(caveat.kind)) left_out.push_back(caveat.text);
  }
  if (!left_out.empty())
    words += fmt::format("{} {}{}",
                         sentences            ? " Not covered:"
                         : coverage.exhausted ? ", except"
                                              : "; not covered:",
                         listed(left_out), sentences ? "." : "");
  return claim;
}

std::string Claim::in_words() const {
  return fmt::format("{}: {}",
                     !exhausted ? "covered"
                     : scoped_  ? "exhausted within scope"
                                : "exhausted",
                     statement);
}

Conclusion conclude(const Claim& claim, bool found, std::optional<bool> expected) {
  // If finding something meets the expectation, no further execution is needed.
  if (expected && (found || claim.no_end.empty()))
    return *expected ? Conclusion::NothingFound : Conclusion::Found;
  if (found) return Conclusion::Found;
  return claim.no_end.empty() ? Conclusion::NothingFound : Conclusion::NothingExecuted;
}

}  // namespace slalom
