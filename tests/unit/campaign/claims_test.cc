// The claims of a search, for every way in which executions end, every limit, and every gap in what is seen
// or controlled.
#include "campaign/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace slalom {
namespace {

using Kind = Caveat::Kind;
using Weight = Caveat::Weight;
using End = ExploreResult::End;

// Ten executions, all complete, by a strategy that has no task left.
ExploreResult everything() {
  ExploreResult result;
  result.tasks = result.executions = 10;
  result.coverage.exhausted = true;
  result.coverage.statement = "every schedule was executed";
  return result;
}

std::set<Kind> kinds(const Claim& claim) {
  std::set<Kind> all;
  for (const Caveat& caveat : claim.caveats) all.insert(caveat.kind);
  return all;
}

// Returns the caveat that one execution of each kind of outcome adds to the claim of a finished search; empty
// if it adds none.
std::optional<Kind> expected_caveat(const Outcome& outcome) {
  return std::visit(Overloaded{
                        [](const Exited&) -> std::optional<Kind> { return std::nullopt; },
                        [](const Deadlocked&) -> std::optional<Kind> { return std::nullopt; },
                        [](const Faulted&) -> std::optional<Kind> { return std::nullopt; },
                        [](const LimitReached& reached) -> std::optional<Kind> {
                          switch (reached.limit) {
                            case LimitReached::Limit::Steps:
                              return Kind::StepLimit;
                            case LimitReached::Limit::Notes:
                              return Kind::NotesLimit;
                            case LimitReached::Limit::Check:
                              return Kind::CheckLimit;
                          }
                          return std::nullopt;
                        },
                        [](const Abandoned& abandoned) -> std::optional<Kind> {
                          switch (abandoned.reason) {
                            case Abandoned::Reason::Unfinished:
                              return Kind::Unfinished;
                            case Abandoned::Reason::Redundant:
                            case Abandoned::Reason::NotPossible:
                              return std::nullopt;
                          }
                          return std::nullopt;
                        },
                        [](const ToolError&) -> std::optional<Kind> { return Kind::Failed; },
                    },
                    outcome);
}

std::vector<Outcome> all_outcomes() {
  std::vector<Outcome> all{Exited{}, Deadlocked{}, Faulted{}, ToolError{"trouble"}};
  for (size_t i = 0; i < LimitReached::kLimits; ++i)
    all.push_back(LimitReached{.limit = static_cast<LimitReached::Limit>(i)});
  for (size_t i = 0; i < Abandoned::kReasons; ++i)
    all.push_back(Abandoned{"some reason", static_cast<Abandoned::Reason>(i)});
  return all;
}

// A strategy that hands out `count` tasks and is then finished.
class Tasks : public Strategy {
 public:
  explicit Tasks(uint64_t count) : left_(count) {}
  std::string name() const override { return "tasks"; }
  Recording recording() const override { return Recording::Schedule; }
  std::optional<Task> begin() override {
    if (left_ == 0) return std::nullopt;
    Task task;
    task.index = --left_;
    return task;
  }
  std::unique_ptr<Walker> walker(const Task&) const override { return std::make_unique<Nothing>(); }
  void end(const Task&, const Execution&) override {}
  Coverage coverage() const override {
    Coverage coverage;
    coverage.exhausted = left_ == 0;
    coverage.statement = "every schedule was executed";
    return coverage;
  }
  void save(ByteWriter&) const override {}
  bool load(ByteReader&) override { return true; }

 private:
  struct Nothing : Walker {
    std::variant<Decision, Abandoned> choose(const ChoicePoint&, std::span<const Option>,
                                             const Execution&) override {
      return Abandoned{};
    }
  };
  uint64_t left_;
};

// A machine whose executions end at once: the first ones normally, the last one with the given outcome.
class Ending : public Machine {
 public:
  Ending(uint64_t well, Outcome last) : well_(well), last_(std::move(last)) {}
  Result<void> reset(const Inputs&) override { return {}; }
  Stop start(EventSink&) override { return made_++ < well_ ? Outcome(Exited{}) : last_; }
  Stop resume(Decision) override { return Outcome(ToolError{"there is no choice"}); }
  Position position() const override { return Position{1}; }
  std::vector<Option> blocked() const override { return {}; }
  uint64_t state_hash() const override { return 0; }
  EndFacts ending() const override { return {.steps = Step{position().raw}, .positions = position()}; }
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return names_; }

 private:
  struct NoNames : Names {
    std::string agent(AgentId) const override { return "?"; }
    std::string role(AgentId) const override { return "?"; }
    std::string source(Place) const override { return "?"; }
    std::string object(ObjectId) const override { return "?"; }
    std::string place(Place) const override { return "?"; }
  };
  uint64_t well_, made_ = 0;
  Outcome last_;
  NoNames names_;
};

ExploreResult explored(uint64_t well, const Outcome& last) {
  Tasks tasks(well + 1);
  const auto factory = [&]() -> Result<Worker> {
    return Worker{std::make_unique<Ending>(well, last), nullptr};
  };
  return Explorer(tasks, factory, {}).run().value();
}

TEST(Claims, EachKindOfOutcomeIsCountedForWhatItProves) {
  for (const Outcome& outcome : all_outcomes()) {
    SCOPED_TRACE(outcome.index());
    const Claim claim = make_claim({.explored = explored(3, outcome)});
    const std::optional<Kind> expected = expected_caveat(outcome);
    EXPECT_EQ(claim.exhausted, !expected) << claim.statement;
    EXPECT_EQ(kinds(claim), expected ? std::set<Kind>{*expected} : std::set<Kind>()) << claim.statement;
    EXPECT_EQ(claim.in_words().find("exhausted") == std::string::npos, expected.has_value())
        << claim.in_words();
    EXPECT_TRUE(claim.no_end.empty()) << claim.no_end;
  }
}

TEST(Claims, ASearchWithoutAnyExecutionThatEndedClaimsNothing) {
  for (const Outcome& outcome : all_outcomes()) {
    SCOPED_TRACE(outcome.index());
    const Claim claim = make_claim({.explored = explored(0, outcome)});
    const bool ends =
        std::visit(Overloaded{[](const Exited&) { return true; }, [](const Deadlocked&) { return true; },
                              [](const Faulted&) { return true; }, [](const LimitReached&) { return false; },
                              [](const Abandoned&) { return false; }, [](const ToolError&) { return false; }},
                   outcome);
    EXPECT_EQ(claim.no_end.empty(), ends) << claim.no_end;
    EXPECT_EQ(claim.exhausted, ends);
    EXPECT_EQ(conclude(claim, false, std::nullopt),
              ends ? Conclusion::NothingFound : Conclusion::NothingExecuted);
    EXPECT_EQ(conclude(claim, true, std::nullopt), Conclusion::Found);
    // A fixed twin without any complete execution does not meet expectations. A found livelock does.
    EXPECT_EQ(conclude(claim, false, true), ends ? Conclusion::NothingFound : Conclusion::NothingExecuted);
    EXPECT_EQ(conclude(claim, true, true), Conclusion::NothingFound);
    EXPECT_EQ(conclude(claim, true, false), Conclusion::Found);
    if (!ends) {
      EXPECT_EQ(claim.statement.find("every schedule was executed"), std::string::npos) << claim.statement;
    }
  }
  ExploreResult none;
  none.coverage.exhausted = true;
  none.end = End::TimeLimit;
  EXPECT_FALSE(make_claim({.explored = none}).exhausted);
  EXPECT_EQ(make_claim({.explored = none}).no_end,
            "no execution reached its end: the time was over; give the search more time");
}

TEST(Claims, TheAdviceNamesTheOptionThatRaisesTheLimit) {
  const ExploreResult cut_off = explored(0, LimitReached{});
  ClaimFacts facts{.explored = cut_off, .max_steps = 100'000};
  EXPECT_EQ(
      make_claim(facts).in_words(),
      "covered: nothing: no execution reached its end: it was cut off after 100,000 steps; allow more with "
      "--max-steps, or let the target do less");
  facts.more_steps = "CheckOptions::max_steps";
  EXPECT_NE(make_claim(facts).no_end.find("CheckOptions::max_steps"), std::string::npos);
}

// A caveat of each kind, with the facts that cause it.
struct Situation {
  std::string what;
  std::optional<Kind> kind;
  std::function<void(ExploreResult&, ClaimFacts&)> make;
};

std::vector<Situation> situations() {
  const auto end = [](End end) {
    return [end](ExploreResult& r, ClaimFacts&) {
      r.coverage.exhausted = false;
      r.end = end;
    };
  };
  const auto where = [](ChoicePolicy::Where where) {
    return [where](ExploreResult&, ClaimFacts& f) { f.policy.where = where; };
  };
  Found race;
  race.verdict.kind = BugKind::DataRace;
  race.verdict.evidence.push_back({.pc = Place{7}});
  using Sync = ChoicePolicy::Where;
  return {
      {"everything", std::nullopt, [](ExploreResult&, ClaimFacts&) {}},
      {"--schedules", Kind::ScheduleLimit, end(End::ScheduleLimit)},
      {"--time", Kind::TimeLimit, end(End::TimeLimit)},
      {"Ctrl-C", Kind::Interrupted, end(End::Interrupted)},
      {"--first", Kind::FirstFailure, end(End::FirstFailure)},
      {"a sampler that ends", Kind::Sampled, end(End::SpaceExplored)},
      {"cut off", Kind::StepLimit, [](ExploreResult& r, ClaimFacts&) { r.truncated = r.limits[0] = 1; }},
      {"too many notes", Kind::NotesLimit,
       [](ExploreResult& r, ClaimFacts&) { r.truncated = r.limits[1] = 1; }},
      {"a check without end", Kind::CheckLimit,
       [](ExploreResult& r, ClaimFacts&) { r.truncated = r.limits[2] = 1; }},
      {"given up", Kind::Unfinished, [](ExploreResult& r, ClaimFacts&) { r.blocked = r.abandoned[0] = 1; }},
      {"pruned", std::nullopt, [](ExploreResult& r, ClaimFacts&) { r.blocked = r.abandoned[1] = 1; }},
      {"not possible", std::nullopt, [](ExploreResult& r, ClaimFacts&) { r.blocked = r.abandoned[2] = 1; }},
      {"guessed", Kind::WaitsGuessed,
       [](ExploreResult& r, ClaimFacts&) { r.guessed = r.blocked = r.abandoned[2] = 1; }},
      {"diverged", Kind::NotRepeated, [](ExploreResult& r, ClaimFacts&) { r.diverged = 1; }},
      {"failed", Kind::Failed, [](ExploreResult& r, ClaimFacts&) { r.failed = 1; }},
      {"dfs:limit=2", Kind::Bound,
       [](ExploreResult& r, ClaimFacts&) {
         r.coverage.bound = "preemptions";
         r.coverage.completed = 2;
       }},
      {"fairness", Kind::Fairness, [](ExploreResult& r, ClaimFacts&) { r.coverage.fair_only = true; }},
      {"--choices nowhere", Kind::BlockedOnly, where(Sync::Nowhere)},
      {"a kernel", Kind::LearnedPlaces,
       [](ExploreResult&, ClaimFacts& f) {
         f.policy.where = Sync::Nowhere;
         f.learns = true;
         f.communicate = "the flows";
         f.learned_places = 3;
       }},
      {"no race", std::nullopt, where(Sync::Sync)},
      {"a race that was foreseen", std::nullopt,
       [race](ExploreResult& r, ClaimFacts& f) {
         f.policy.where = Sync::Sync;
         f.policy.places = {Place{7}};
         r.found = {race};
       }},
      {"a race", Kind::LateRaces,
       [race](ExploreResult& r, ClaimFacts& f) {
         f.policy.where = Sync::Sync;
         r.found = {race};
       }},
      {"a race, after which it begins anew", std::nullopt,
       [race](ExploreResult& r, ClaimFacts& f) {
         f.policy.where = Sync::Sync;
         r.found = {race};
         f.restarts = true;
       }},
      {"without the detector", Kind::RacesIgnored,
       [](ExploreResult&, ClaimFacts& f) {
         f.policy.where = Sync::Sync;
         f.looks_for_races = false;
       }},
      {"an atomic", Kind::LateAtomics, [](ExploreResult& r, ClaimFacts&) { r.learned = {Place{1}}; }},
      {"many places", Kind::TooManyPlaces,
       [](ExploreResult&, ClaimFacts& f) {
         f.policy.where = Sync::Sync;
         f.policy.places = {Place{1}, Place{2}};
         f.most_places = 1;
       }},
      {"--scope", Kind::Scope, [](ExploreResult&, ClaimFacts& f) { f.scope = "module:x"; }},
      {"contexts", Kind::Contexts,
       [](ExploreResult&, ClaimFacts& f) {
         f.standing = {{Kind::Contexts, "other moments for timer interrupts"}};
       }},
      {"--timeouts idle", Kind::IdleTimeouts,
       [](ExploreResult&, ClaimFacts& f) {
         f.standing = {{Kind::IdleTimeouts, "time limits that run out early"}};
       }},
      {"all seen", std::nullopt,
       [](ExploreResult&, ClaimFacts& f) { f.sight.extent = Sight::Extent::Everything; }},
      {"no accesses seen", Kind::AccessesNotSeen,
       [](ExploreResult&, ClaimFacts& f) { f.sight.extent = Sight::Extent::Nothing; }},
      {"some accesses seen", Kind::AccessesPartlySeen,
       [](ExploreResult&, ClaimFacts& f) {
         f.sight = {Sight::Extent::Parts, {"other.c"}, {}};
       }},
      {"a library", Kind::LibrariesNotSeen,
       [](ExploreResult&, ClaimFacts& f) { f.sight.libraries = {"libz.so.1"}; }},
      {"a fork", Kind::Uncontrolled,
       [](ExploreResult&, ClaimFacts& f) { f.uncontrolled = {{"the program forks"}}; }},
      {"a leaked thread", std::nullopt,
       [](ExploreResult&, ClaimFacts& f) {
         f.uncontrolled = {{"a thread is left", false}};
       }},
      {"unpinned", Kind::UnpinnedThreads, [](ExploreResult&, ClaimFacts& f) { f.unpinned_threads = 2; }},
      {"not compared", Kind::SerialOrders,
       [](ExploreResult&, ClaimFacts& f) { f.not_compared = {"results"}; }},
  };
}

TEST(Claims, EachSituationHasItsCaveatInTheSameSentence) {
  std::set<Kind> seen;
  for (const Situation& situation : situations()) {
    SCOPED_TRACE(situation.what);
    ExploreResult result = everything();
    ClaimFacts facts{.explored = result};
    situation.make(result, facts);
    const Claim claim = make_claim(facts);
    EXPECT_EQ(kinds(claim), situation.kind ? std::set<Kind>{*situation.kind} : std::set<Kind>())
        << claim.statement;
    if (situation.kind) seen.insert(*situation.kind);
    const bool refuted = situation.kind && weight_of(*situation.kind) == Weight::Refutes;
    EXPECT_EQ(claim.exhausted, !refuted);
    EXPECT_EQ(claim.in_words().starts_with("exhausted"), !refuted) << claim.in_words();
    // One sentence, so that a quotation of the word includes its limits.
    EXPECT_EQ(claim.statement.find('.'),
              claim.statement.find(".so.1") == std::string::npos
                  ? situation.what == "some accesses seen" ? claim.statement.find(".c") : std::string::npos
                  : claim.statement.find(".so.1"))
        << claim.statement;
    const bool is_plain = claim.in_words() == "exhausted: every schedule was executed";
    const bool said_by_strategy = situation.kind == Kind::Bound || situation.kind == Kind::Fairness;
    const bool remark = situation.kind && weight_of(*situation.kind) == Weight::Remarks;
    EXPECT_EQ(is_plain, !situation.kind || said_by_strategy || remark) << claim.in_words();
  }
  seen.insert(Kind::BehindFailures);  // below
  EXPECT_EQ(seen.size(), static_cast<size_t>(Caveat::kKinds))
      << "a kind of caveat that no situation leads to";
}

TEST(Claims, WithoutPreemptionsItDoesNotMatterWhereTheyCouldCome) {
  ExploreResult result = everything();
  result.coverage.bound = "preemptions";
  ClaimFacts facts{.explored = result, .policy = {.where = ChoicePolicy::Where::Nowhere}};
  for (const uint64_t completed : {0, 1}) {
    result.coverage.completed = completed;
    EXPECT_EQ(make_claim(facts).exhausted, completed == 0);
  }
}

// Only the executions without a failure show what comes after it. A proof needs no more.
TEST(Claims, FailuresInMostExecutionsHideWhatComesAfterThem) {
  ExploreResult result = everything();
  for (const uint64_t broken : {5, 6}) {
    result.broken = broken;
    result.coverage.exhausted = true;
    result.end = End::SpaceExplored;
    EXPECT_TRUE(make_claim({.explored = result}).exhausted);
    result.coverage.exhausted = false;
    result.end = End::ScheduleLimit;
    const Claim claim = make_claim({.explored = result});
    EXPECT_EQ(kinds(claim).contains(Kind::BehindFailures), broken == 6);
    EXPECT_EQ(claim.statement.find("the failures that ended 6 of 10") != std::string::npos, broken == 6);
  }
}

TEST(Claims, NamesOfCaveatsAreToldApart) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < Caveat::kKinds; ++kind) names.insert(name(static_cast<Kind>(kind)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Caveat::kKinds));
  EXPECT_FALSE(names.contains(""));
}

// In any combination, the word is there if and only if no caveat refutes it.
TEST(Claims, TheWordIsNeverThereWithACaveatThatTakesItAway) {
  const std::vector<Situation> all = situations();
  for (const Situation& one : all)
    for (const Situation& other : all) {
      SCOPED_TRACE(one.what + " and " + other.what);
      ExploreResult result = everything();
      ClaimFacts facts{.explored = result};
      one.make(result, facts);
      other.make(result, facts);
      const Claim claim = make_claim(facts);
      const bool refuted = std::ranges::any_of(
          claim.caveats, [](const Caveat& caveat) { return weight_of(caveat.kind) == Weight::Refutes; });
      EXPECT_EQ(claim.exhausted, !refuted && result.coverage.exhausted);
      EXPECT_TRUE(claim.exhausted || !claim.caveats.empty()) << "not exhausted, and nobody knows why";
      EXPECT_EQ(claim.in_words().find("exhausted") != std::string::npos, claim.exhausted) << claim.in_words();
    }
}

TEST(Claims, SamplersSayInASentenceOfTheirOwnWhatTheyCannotSee) {
  ExploreResult result = everything();
  result.coverage.exhausted = false;
  result.coverage.statement = "random: 10 executions. What is rarer is not covered.";
  result.end = End::ScheduleLimit;
  ClaimFacts facts{.explored = result};
  facts.sight.extent = Sight::Extent::Nothing;
  EXPECT_EQ(
      make_claim(facts).in_words(),
      "covered: random: 10 executions. What is rarer is not covered. Not covered: orders of memory accesses, "
      "which are not seen (build the program with -fsanitize=thread).");
}

}  // namespace
}  // namespace slalom
