// Accesses that the choice policy names are choice points of a kernel: exact numbers of interleavings.
#include <gtest/gtest.h>

#include <set>

#include "unit/vm/two_flows.h"

namespace slalom::vm {
namespace {

using Watched = ChoicePolicy::WatchedAccess;

Inputs watching(std::vector<Watched> accesses, ChoicePolicy::Where where = ChoicePolicy::Where::Nowhere) {
  std::ranges::sort(accesses);
  return {.policy = {.where = where, .accesses = std::move(accesses)}, .max_steps = 100'000};
}

// A NOP, and an update in two accesses: where the counter is not watched, each flow runs in one go.
std::unique_ptr<KernelMachine> watched_counters() {
  return make(TinyCode().add({0x90}).increment().done(0), TinyCode().add({0x90}).increment().done(1));
}

constexpr Watched kCounter{.first = 0x100000, .last = 0x100003};

std::map<uint32_t, int> results(std::vector<Watched> accesses) {
  const auto machine = watched_counters();
  return explore(*machine, watching(std::move(accesses))).results;
}

using Counts = std::map<uint32_t, int>;

TEST(WatchedAccess, MakesChoicePointsWhereThePolicyHasNone) {
  Watched writes = kCounter, reads = kCounter;
  writes.reads = reads.writes = false;
  EXPECT_EQ(results({}), (Counts{{2, 2}}));
  // Two parts for each flow, 4! / (2! 2!) orders. Those in which both have read before one writes lose an
  // update.
  EXPECT_EQ(results({writes}), (Counts{{1, 4}, {2, 2}}));
  EXPECT_EQ(results({reads}), (Counts{{2, 6}}));
  // Three parts for each: 6! / (3! 3!). No update is lost if one flow has written before the other one reads,
  // which is so in 4 orders for either flow.
  EXPECT_EQ(results({kCounter}), (Counts{{1, 12}, {2, 8}}));
}

TEST(WatchedAccess, IsFoundByEachOfItsBytes) {
  for (const uint64_t byte : {0x100000, 0x100001, 0x100003})
    EXPECT_EQ(results({{.first = byte, .last = byte, .reads = false}}), (Counts{{1, 4}, {2, 2}})) << byte;
  for (const uint64_t byte : {0xfffff, 0x100004})
    EXPECT_EQ(results({{.first = byte, .last = byte}}), (Counts{{2, 2}})) << byte;
}

TEST(WatchedAccess, CanBeThatOfOneInstruction) {
  const Place store{kTinyCode + 1 + 5 + 1};
  // The other flow may run before it, between its parts, or after it.
  EXPECT_EQ(results({{.place = store}}), (Counts{{1, 1}, {2, 2}}));
  EXPECT_EQ(results({{.place = store, .first = 0x100000, .last = 0x100003, .reads = false}}),
            (Counts{{1, 1}, {2, 2}}));
  EXPECT_EQ(results({{.place = store, .writes = false}}), (Counts{{2, 2}}));
  EXPECT_EQ(results({{.place = store, .first = 0x100004, .last = 0x100007}}), (Counts{{2, 2}}));
}

TEST(WatchedAccess, AddsNothingWhereThereIsAPlace) {
  const auto machine = watched_counters();
  const Explored places = explore(*machine, watching({}, ChoicePolicy::Where::Everywhere));
  const Explored both = explore(*machine, watching({kCounter}, ChoicePolicy::Where::Everywhere));
  EXPECT_EQ(both.executions, places.executions);
  EXPECT_EQ(both.schedules, places.schedules);
}

// A MOVSD from one watched word to another.
TEST(WatchedAccess, IsOneChoicePointForAnInstruction) {
  TinyCode first, second;
  first.add({0xbe}).word(0x100100).add({0xbf}).word(0x100000).add({0xa5}).done(0);
  second.add({0xbe}).word(0x100200).add({0xbf}).word(0x100000).add({0xa5}).done(1);
  const auto machine = make(first, second);
  EXPECT_EQ(explore(*machine, watching({{.first = 0x100000, .last = 0x1003ff}})).executions, 6);
}

TEST(WatchedAccess, SchedulesReplayWithoutThePolicy) {
  const auto machine = watched_counters();
  std::set<uint32_t> seen;
  for (const Schedule& schedule : explore(*machine, watching({kCounter})).schedules) {
    const Replayed with_places = replay(*machine, schedule, ChoicePolicy::Where::Everywhere);
    EXPECT_EQ(replay(*machine, schedule, ChoicePolicy::Where::Nowhere), with_places);
    seen.insert(with_places.counter);
  }
  EXPECT_EQ(seen.size(), 2u);
}

// Returns how often the machine asks if each decision passes so many choice points, and its position at the
// end.
std::pair<int, uint64_t> asked(KernelMachine& machine, uint32_t keep) {
  Quiet sink;
  EXPECT_TRUE(machine.reset(watching({kCounter})).ok());
  Stop stop = machine.start(sink);
  int times = 0;
  for (; std::holds_alternative<ChoicePoint>(stop); ++times)
    stop = machine.resume(
        {.next = std::get<ChoicePoint>(stop).options().front().agent, .forecast = {.keep = keep}});
  return {times, machine.position().raw};
}

TEST(WatchedAccess, IsPassedIfTheSearchSaysSo) {
  const auto machine = watched_counters();
  // At the start, at two accesses, at the end of the first flow, and again at two accesses.
  EXPECT_EQ(asked(*machine, 0), std::pair(6, uint64_t{4}));
  EXPECT_EQ(asked(*machine, 1), std::pair(4, uint64_t{4}));
  EXPECT_EQ(asked(*machine, 2), std::pair(2, uint64_t{4}));
}

// CPU 1 spins for the word that CPU 0 writes. The watch for the end of its wait and that of the policy are at
// the same access.
TEST(WatchedAccess, WakesACpuThatWaitsForIt) {
  TinyCode first, second;
  first.add({0x90}).store(0x100100, 1).increment().done(0);
  second.add({0xf3, 0x90}).add({0x83, 0x3d}).word(0x100100).add({0x00}).add({0x74, 0xf5});  // until it is 1
  second.increment().done(1);
  const auto machine = make(first, second);
  const Explored all = explore(*machine, watching({{.first = 0x100100, .last = 0x100103, .reads = false}}));
  EXPECT_EQ(all.deadlocks, 0);
  EXPECT_EQ(all.results.size(), 1u);
  EXPECT_EQ(all.results.count(2), 1u);
  // 3 of these without the choice points behind the store, where the other CPU can go on.
  EXPECT_EQ(all.executions, 5);
}

}  // namespace
}  // namespace slalom::vm
