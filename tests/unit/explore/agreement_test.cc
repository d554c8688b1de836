// Every exhaustive search must find the same ways for a program to end. The reference is plain depth-first
// search, because it is so simple. The tests use thousands of random programs.
#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "unit/explore/random_program.h"
#include "unit/explore/search.h"

namespace slalom {
namespace {

#ifdef SLALOM_SANITIZED
constexpr int kPrograms = 40;  // per test
#else
constexpr int kPrograms = 400;
#endif
constexpr int kOperations = 7;

struct Conditions {
  ChoicePolicy::Where where = ChoicePolicy::Where::Everywhere;
  bool snapshots = true;
  unsigned workers = 1;
};

Reached reach(const std::shared_ptr<const ToyProgram>& program, Strategy&& strategy, Conditions given = {}) {
  SearchOptions options;
  options.explore.inputs.policy.where = given.where;
  options.explore.workers = given.workers;
  options.snapshots = given.snapshots;
  const Reached reached = search(program, strategy, options);
  EXPECT_TRUE(exhausted(reached.result));
  EXPECT_EQ(reached.result.truncated, 0u);
  return reached;
}

// Partial-order reduction has no fairness, so the reference has none either.
constexpr auto kAll = DfsOptions::Schedules::All;
Dfs plain() {
  return Dfs({.bound = DfsOptions::Bound::None, .schedules = kAll});
}
Dpor with(DporOptions::Mode mode, DporOptions::Defect defect = DporOptions::Defect::None) {
  return Dpor({.mode = mode, .defect = defect});
}

bool has_data_choice(const ToyProgram& program) {
  return std::any_of(program.code.begin(), program.code.end(), [](const ToyInstruction& i) {
    return i.op == ToyOp::Choose || i.kind == OpKind::Signal;
  });
}

// Whether a compare-and-swap or a trylock writes depends on the order.
bool may_fail(const ToyProgram& program) {
  return std::any_of(program.code.begin(), program.code.end(),
                     [](const ToyInstruction& i) { return may_only_read(i.kind); });
}

class Agreement : public testing::TestWithParam<int> {
 protected:
  // Calls check(program, text) for each program of this test's share. With `share`, for one in `share` of
  // them: for checks that execute all schedules of a program several times.
  template <typename Check>
  void for_programs(Check check, int share = 1) {
    for (int i = 0; i < kPrograms && !HasFailure(); i += share) {
      const uint64_t seed =
          first_program() + static_cast<uint64_t>(GetParam()) * kPrograms + static_cast<uint64_t>(i);
      const RandomProgram program = ProgramGenerator(seed).make(kOperations);
      SCOPED_TRACE("program " + std::to_string(seed) + "\n" + program.text);
      check(built(program.builder), seed);
    }
  }
};

TEST_P(Agreement, FineDporReachesWhatDfsReaches) {
  for_programs([](const auto& program, uint64_t seed) {
    const Reached all = reach(
        program, plain(), {.snapshots = seed % 2 == 0, .workers = 1 + static_cast<unsigned>(seed / 2 % 2)});
    const Reached one = reach(program, with(DporOptions::Mode::Fine));
    EXPECT_EQ(one.states, all.states);
    EXPECT_EQ(one.titles, all.titles);
    if (all.titles.empty()) {
      if (!has_data_choice(*program)) {
        EXPECT_EQ(one.result.executions, one.result.classes) << "a class was executed twice";
      }
      EXPECT_EQ(one.result.classes, all.result.classes);
      // Footprints that are unknown before the operation is executed cost blocked executions.
      if (!has_data_choice(*program) && !may_fail(*program)) {
        EXPECT_EQ(one.result.blocked, 0u);
      }
    }
    const Reached other = reach(program, with(DporOptions::Mode::Fine), {.snapshots = false, .workers = 2});
    EXPECT_EQ(other, all);
    EXPECT_EQ(other.result.executions, one.result.executions);
    EXPECT_EQ(other.result.blocked, one.result.blocked);
  });
}

TEST_P(Agreement, CachingLosesNothing) {
  for_programs(
      [](const auto& program, uint64_t) {
        const Reached all = reach(program, plain());
        const Reached fewer = reach(program, Dfs({.bound = DfsOptions::Bound::None,
                                                  .caching = DfsOptions::Caching::HappensBefore,
                                                  .schedules = kAll}));
        EXPECT_EQ(fewer, all);
        EXPECT_LE(fewer.result.executions, all.result.executions);
        const Reached bounded =
            reach(program, Dfs({.caching = DfsOptions::Caching::HappensBefore, .schedules = kAll}),
                  {.snapshots = false, .workers = 2});
        EXPECT_EQ(bounded, all);
      },
      2);
}

TEST_P(Agreement, BoundsOrderTheSpaceAndLoseNothing) {
  for_programs(
      [](const auto& program, uint64_t) {
        const Reached all = reach(program, plain());
        const Reached preemptions = reach(program, Dfs({.schedules = kAll}));
        const Reached delays = reach(program, Dfs({.bound = DfsOptions::Bound::Delays, .schedules = kAll}),
                                     {.snapshots = false, .workers = 2});
        EXPECT_EQ(preemptions, all);
        EXPECT_EQ(delays, all);
        EXPECT_EQ(preemptions.result.executions, all.result.executions);
        EXPECT_EQ(delays.result.executions, all.result.executions);
      },
      8);
}

TEST_P(Agreement, CoarseDporReachesWhatDfsReachesWithTheSameChoicePoints) {
  for_programs([](const auto& program, uint64_t seed) {
    for (const auto where :
         {ChoicePolicy::Where::Everywhere, ChoicePolicy::Where::Sync, ChoicePolicy::Where::Nowhere}) {
      const Reached all = reach(program, plain(), {.where = where});
      const Reached reduced =
          reach(program, with(DporOptions::Mode::Coarse),
                {.where = where, .snapshots = seed % 2 == 0, .workers = 1 + static_cast<unsigned>(seed % 2)});
      EXPECT_EQ(reduced.states, all.states) << static_cast<int>(where);
      EXPECT_EQ(reduced.titles, all.titles) << static_cast<int>(where);
      EXPECT_LE(reduced.result.executions, all.result.executions);
    }
  });
}

TEST_P(Agreement, BoundedDporReachesWhatBoundedDfsReaches) {
  for_programs([](const auto& program, uint64_t) {
    for (uint32_t limit = 0; limit < 3; ++limit) {
      const Reached all = reach(program, Dfs({.limit = limit, .schedules = kAll}));
      const Reached reduced = reach(program, Dpor({.mode = DporOptions::Mode::Bounded, .limit = limit}));
      EXPECT_EQ(reduced.states, all.states) << "limit " << limit;
      EXPECT_EQ(reduced.titles, all.titles) << "limit " << limit;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Random, Agreement, testing::Range(0, 5));

// A mistake once broke each of them.
TEST(Failures, HideNothing) {
  const std::vector<std::vector<std::string>> programs = {
      // The first thread fails. Without a preemption, the other thread can only go first.
      {"r = y\nassert r != 3\nf = 3\nr = f\nassert r != 3\n", "y = 3\nr = x\n"},
      // A failure in the middle of what was to be executed.
      {"x = 0\n", "x = 0\nr = f\nr = y\nassert r != 3\n", "r = cas(f, 1, 1)\ny = 3\nr = x\n", "r = x\n"},
  };
  for (const auto& threads : programs) {
    ToyBuilder b;
    b.shared("x").shared("y").shared("f", {.atomic = true});
    for (size_t i = 0; i < threads.size(); ++i) b.thread("t" + std::to_string(i), threads[i]);
    const auto program = built(b);
    const Reached all = reach(program, plain());
    EXPECT_EQ(reach(program, with(DporOptions::Mode::Fine)), all);
    EXPECT_EQ(reach(program, with(DporOptions::Mode::Coarse)), all);
    for (uint32_t limit = 0; limit < 3; ++limit)
      EXPECT_EQ(reach(program, Dpor({.mode = DporOptions::Mode::Bounded, .limit = limit})),
                reach(program, Dfs({.limit = limit, .schedules = kAll})))
          << limit;
  }
}

// Raising a running handler orders only its next run, not the current one.
TEST(Raise, OrdersTheNextRunOnly) {
  for (const char* handler :
       {"r = x\nf = r + 1\n", "f = 1\nr = x\nassert r == 0\n", "r = f\ny = x\nassert r == y\n"})
    for (const char* raiser :
         {"x = 1\nraise tick\n", "f = 1\nraise tick\nx = 1\n", "x = 1\nraise tick\nx = 2\nraise tick\n"})
      for (const int64_t times : {0, 1, 2}) {
        SCOPED_TRACE(std::string(handler) + "--\n" + raiser + std::to_string(times));
        ToyBuilder b;
        b.shared("x", {.atomic = true}).shared("y", {.atomic = true}).shared("f", {.atomic = true});
        b.thread("a", "y = 3\n").thread("b", raiser).interrupt("tick", "a", handler, times);
        const auto program = built(b);
        const Reached all = reach(program, plain());
        EXPECT_EQ(reach(program, with(DporOptions::Mode::Fine)), all);
        EXPECT_EQ(reach(program, with(DporOptions::Mode::Coarse)), all);
        for (uint32_t limit = 0; limit < 3; ++limit)
          EXPECT_EQ(reach(program, Dpor({.mode = DporOptions::Mode::Bounded, .limit = limit})),
                    reach(program, Dfs({.limit = limit, .schedules = kAll})))
              << limit;
      }
  // The raise comes before or after the first delivery. The thread's operation comes before, between or after
  // the two runs. The handler's load does not matter.
  ToyBuilder b;
  b.shared("x").thread("a", "yield").thread("b", "raise tick").interrupt("tick", "a", "r = x");
  EXPECT_EQ(reach(built(b), plain()).result.classes, 6u);
  EXPECT_EQ(reach(built(b), with(DporOptions::Mode::Fine)).result.executions, 6u);
}

// A compare-and-swap counts as a write until it is executed in its new place. Here it only reads. It then
// explores what was put beside it, up to a point, and must not count as a branch of its own.
TEST(CompareAndSwap, WhatItOnlyReadsIsAskedForAgain) {
  for (const int64_t times : {1, 2, 3})
    for (const char* swap : {"r = cas(f, 1, 1)", "r = cas(f, 0, 2)", "r = cas(f, 2, 1)\nr = cas(f, 1, 0)"}) {
      SCOPED_TRACE(std::to_string(times) + " times, " + swap);
      ToyBuilder b;
      b.shared("f", {.atomic = true}).thread("t0", "r = f").thread("t1", "q = fetch_add(f, 1)");
      b.thread("t2", swap).interrupt("tick", "t0", "r = f", times);
      const Reached all = reach(built(b), plain());
      const Reached fine = reach(built(b), with(DporOptions::Mode::Fine));
      EXPECT_EQ(fine, all);
      EXPECT_EQ(fine.result.classes, all.result.classes);
      EXPECT_EQ(fine.result.executions, all.result.classes);
      EXPECT_EQ(reach(built(b), with(DporOptions::Mode::Coarse)), all);
    }
}

// The tests above are only worth something if they notice mistakes.
int disagreements(DporOptions::Mode mode, DporOptions::Defect defect, ChoicePolicy::Where where) {
  int found = 0;
  for (uint64_t seed = 0; seed < 2000 && found == 0; ++seed) {
    const auto program = built(ProgramGenerator(seed).make(kOperations).builder);
    found +=
        !(reach(program, with(mode, defect), {.where = where}) == reach(program, plain(), {.where = where}));
  }
  return found;
}

TEST(BrokenDpor, AMissedRaceIsNoticed) {
  EXPECT_GT(disagreements(DporOptions::Mode::Fine, DporOptions::Defect::MissedRace,
                          ChoicePolicy::Where::Everywhere),
            0);
}
TEST(BrokenDpor, AWrongSleepSetIsNoticed) {
  EXPECT_GT(disagreements(DporOptions::Mode::Fine, DporOptions::Defect::WrongSleepSet,
                          ChoicePolicy::Where::Everywhere),
            0);
}
TEST(BrokenDpor, AForgottenAncestorIsNoticed) {
  EXPECT_GT(disagreements(DporOptions::Mode::Coarse, DporOptions::Defect::ForgottenAncestor,
                          ChoicePolicy::Where::Sync),
            0);
}

// In another place, t0's second transition takes the branch and touches x. The timer must come before it,
// too.
TEST(CoarseDpor, ATransitionMayTouchMoreInItsNewPlace) {
  ToyBuilder b;
  b.shared("x").shared("f", {.atomic = true});
  b.thread("t0", "q = fetch_add(f, 1)\nr = f\nif r == 1 {\nx = 2\n}\nr = cas(f, 0, 0)");
  b.thread("t1", "cancel late\narm late\nf = 3").timer("late", "x = 9");
  const Conditions given{.where = ChoicePolicy::Where::Sync};
  EXPECT_EQ(reach(built(b), with(DporOptions::Mode::Coarse), given), reach(built(b), plain(), given));
}

// Only one of t0's values conflicts with t1's operation, but t0 must be woken for all values.
TEST(CoarseDpor, WhatWakesAnAgentWithOneValueWakesIt) {
  ToyBuilder b;
  b.shared("x").shared("y").thread("t0", "r = choose(2)\nif r == 1 {\nx = 2\n}").thread("t1", "y = x + 1");
  for (const auto where : {ChoicePolicy::Where::Sync, ChoicePolicy::Where::Nowhere}) {
    const Reached all = reach(built(b), plain(), {.where = where});
    EXPECT_EQ(all.states.size(), 3u);
    EXPECT_EQ(reach(built(b), with(DporOptions::Mode::Coarse), {.where = where}), all);
  }
}

// Landslide, Figure 5.4. Thread 3 is one transition. Considering only its first evil ancestor misses the
// failure.
std::shared_ptr<const ToyProgram> figure_5_4() {
  ToyBuilder b;
  b.shared("x").shared("y");
  b.thread("t1", "x = 42").thread("t2", "y = 31337").thread("t3", "if y == 31337 {\nassert x == 42\n}");
  return built(b);
}

TEST(EvilAncestors, AllOfThemFindFigure54) {
  const Conditions given{.where = ChoicePolicy::Where::Nowhere};
  EXPECT_EQ(reach(figure_5_4(), with(DporOptions::Mode::Coarse), given).titles.size(), 1u);
}
TEST(EvilAncestors, OnlyTheFirstMissesFigure54) {
  const Conditions given{.where = ChoicePolicy::Where::Nowhere};
  EXPECT_TRUE(
      reach(figure_5_4(), with(DporOptions::Mode::Coarse, DporOptions::Defect::ForgottenAncestor), given)
          .titles.empty());
}

}  // namespace
}  // namespace slalom
