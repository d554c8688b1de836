// The partial order and its races, on hand-written executions.
#include "explore/happens_before.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

const AgentId kA = AgentId::initial(0), kB = AgentId::initial(1), kC = AgentId::initial(2);
constexpr ObjectId kX{8}, kY{16}, kM{24}, kCv{32};

// Adds one transition after another. Its options are only those that the test names.
class Written {
 public:
  Written& step(AgentId agent, std::vector<Touch> touches) {
    ChoiceRecord record;
    record.kind = execution_.choices.empty() ? ChoiceKind::Start : ChoiceKind::Running;
    record.taken.agent = agent;
    record.first_touch = static_cast<uint32_t>(execution_.touches.size());
    record.first_option = static_cast<uint32_t>(execution_.options.size());
    execution_.choices.push_back(record);
    execution_.touches.insert(execution_.touches.end(), touches.begin(), touches.end());
    return *this;
  }
  Written& value(uint32_t value, std::vector<Touch> touches) {
    const AgentId agent = execution_.choices.back().taken.agent;
    step(agent, std::move(touches));
    execution_.choices.back().kind = ChoiceKind::Data;
    execution_.choices.back().taken.data = true;
    execution_.choices.back().taken.value = value;
    return *this;
  }
  Written& step(AgentId agent, OpKind op, ObjectId object, uint64_t state = 0, AgentId other = {}) {
    return step(agent, {Touch{object, state, other, op, effect(op)}});
  }
  // Adds an option at the last transition.
  Written& option(AgentId agent, OpKind op, ObjectId object) {
    execution_.options.push_back({agent, {op, object, {}}});
    return *this;
  }
  Written& blocked(AgentId agent, OpKind op, ObjectId object) {
    execution_.blocked.push_back({agent, {op, object, {}}});
    return *this;
  }
  // Returns all races, as "e-j" pairs in order of j.
  std::string races(HappensBefore::Ancestors which = HappensBefore::Ancestors::Immediate) {
    order_.build(execution_);
    std::string text;
    std::vector<uint32_t> found;
    for (size_t j = 0; j < order_.with_blocked(); ++j) {
      order_.races(j, which, found);
      for (uint32_t e : found)
        text += (text.empty() ? "" : " ") + std::to_string(e) + "-" + std::to_string(j);
    }
    return text;
  }
  const HappensBefore& order() {
    order_.build(execution_);
    return order_;
  }
  const Execution& execution() const { return execution_; }

 private:
  Execution execution_;
  HappensBefore order_;
};

TEST(HappensBefore, OrdersConflictsOnly) {
  Written w;
  w.step(kA, OpKind::Store, kX)
      .step(kB, OpKind::Load, kX)
      .step(kC, OpKind::Load, kX)
      .step(kC, OpKind::Store, kY);
  const HappensBefore& order = w.order();
  EXPECT_TRUE(order.before(0, 1));
  EXPECT_TRUE(order.before(0, 2));
  EXPECT_FALSE(order.before(1, 2)) << "two reads";
  EXPECT_TRUE(order.before(2, 3)) << "one agent";
  EXPECT_TRUE(order.before(0, 3)) << "transitive";
  EXPECT_FALSE(order.before(1, 3));
  EXPECT_EQ(w.races(), "0-1 0-2");
}

TEST(HappensBefore, ARaceIsWithTheLastWriteAndTheReadsSince) {
  Written w;
  w.step(kA, OpKind::Store, kX).step(kB, OpKind::Store, kX).step(kA, OpKind::Load, kX);
  w.step(kC, OpKind::Store, kX);
  EXPECT_EQ(w.races(), "0-1 1-2 2-3");
  // With whole transitions, another order could begin at every conflicting one.
  EXPECT_EQ(w.races(HappensBefore::Ancestors::All), "0-1 1-2 2-3 1-3 0-3");
}

TEST(HappensBefore, AReadModifyWriteThatFailedOnlyReads) {
  Written w;
  const Touch failed{kX, 0, {}, OpKind::CompareExchange, Effect::Read};
  w.step(kA, {failed}).step(kB, {failed}).step(kC, OpKind::Store, kX);
  EXPECT_EQ(w.races(), "1-2 0-2");
}

// Locks race from acquisition to acquisition: no agent can acquire in the place of a release.
TEST(HappensBefore, LocksRaceBetweenAcquisitions) {
  Written w;
  w.step(kA, OpKind::Lock, kM, 0).step(kA, OpKind::Store, kX).step(kA, OpKind::Unlock, kM, 1);
  w.step(kB, OpKind::Lock, kM, 0).step(kB, OpKind::Store, kX).step(kB, OpKind::Unlock, kM, 1);
  EXPECT_EQ(w.races(), "0-3");
  EXPECT_EQ(w.races(HappensBefore::Ancestors::AllAndAwaited), "2-3 0-3") << "it could have waited there";
  EXPECT_TRUE(w.order().before(1, 4));
}

TEST(HappensBefore, AFailedTryRacesWithTheRelease) {
  Written w;
  const Touch failed{kM, 1, {}, OpKind::TryLock, Effect::Read};
  w.step(kA, OpKind::Lock, kM, 0).step(kB, {failed}).step(kA, OpKind::Unlock, kM, 1);
  EXPECT_EQ(w.races(), "0-1 1-2");
}

TEST(HappensBefore, ABlockedOperationRacesWithWhatItWaitsFor) {
  Written w;
  w.step(kA, OpKind::Lock, kM, 0).step(kA, OpKind::Store, kX).blocked(kB, OpKind::Lock, kM);
  const HappensBefore& order = w.order();
  EXPECT_EQ(order.size(), 2u);
  EXPECT_EQ(order.with_blocked(), 3u);
  EXPECT_EQ(order[2].agent, kB);
  EXPECT_EQ(order[2].ordinal, 1u);
  EXPECT_EQ(w.races(), "0-2");
}

TEST(HappensBefore, WhatNobodyEverTouchedHasNoRace) {
  Written w;
  w.step(kA, OpKind::Store, kX).blocked(kB, OpKind::SemWait, kM);
  EXPECT_EQ(w.races(), "");
}

TEST(HappensBefore, ReadersDoNotRaceButWritersWithThemDo) {
  Written w;
  w.step(kA, OpKind::ReadLock, kM, 0).step(kB, OpKind::ReadLock, kM, 2);
  w.step(kA, OpKind::ReadUnlock, kM, 4).step(kB, OpKind::ReadUnlock, kM, 2);
  w.step(kC, OpKind::WriteLock, kM, 0);
  // The writer can run in the place of the first acquisition, not between an acquisition and its release. In
  // the place of the second, it would meet the first reader.
  const std::string races = w.races(HappensBefore::Ancestors::All);
  EXPECT_NE(races.find("0-4"), std::string::npos) << races;
  EXPECT_EQ(races.find("2-4"), std::string::npos) << races;
  EXPECT_EQ(races.find("3-4"), std::string::npos) << races;
}

TEST(HappensBefore, TwoWritersRaceLikeTwoLocks) {
  Written w;
  w.step(kA, OpKind::WriteLock, kM, 0).step(kA, OpKind::WriteUnlock, kM, 1);
  w.step(kB, OpKind::ReadLock, kM, 0).step(kB, OpKind::ReadUnlock, kM, 2);
  EXPECT_EQ(w.races(), "0-2");
}

TEST(HappensBefore, ASemaphoreIsTakenOnlyWhereThereIsOne) {
  Written w;  // count 0: B cannot come before A's post
  w.step(kA, OpKind::SemPost, kM, 0).step(kB, OpKind::SemWait, kM, 1);
  EXPECT_EQ(w.races(), "");
  Written two;  // count 1: A and B compete
  two.step(kA, OpKind::SemWait, kM, 1).step(kA, OpKind::SemPost, kM, 0).step(kB, OpKind::SemWait, kM, 1);
  EXPECT_EQ(two.races(), "0-2");
}

TEST(HappensBefore, WhatIsAcquiredWasReleasedBefore) {
  Written w;
  w.step(kA, OpKind::Release, kM, 1).step(kB, OpKind::Acquire, kM, 0);
  EXPECT_TRUE(w.order().before(0, 1));
  EXPECT_EQ(w.races(), "");
  Written claimed;
  claimed.step(kA, OpKind::Claim, kM).step(kB, OpKind::Claim, kM);
  EXPECT_EQ(claimed.races(), "0-1");
}

TEST(HappensBefore, SpawnAndJoinOrderAndAreNotReversed) {
  Written w;
  const ObjectId thread_b{40};
  w.step(kA, OpKind::Store, kX).step(kA, OpKind::Spawn, thread_b, 0, kB).step(kB, OpKind::Store, kX);
  w.step(kB, OpKind::Exit, thread_b, 0).step(kA, OpKind::Join, thread_b, 1, kB).step(kA, OpKind::Load, kX);
  const HappensBefore& order = w.order();
  EXPECT_TRUE(order.before(0, 2));
  EXPECT_TRUE(order.before(2, 5));
  EXPECT_EQ(w.races(), "");
}

TEST(HappensBefore, WhatIsSpawnedRacesWithWhatItsParentDoesLater) {
  Written w;
  w.step(kA, OpKind::Spawn, ObjectId{40}, 0, kB).step(kA, OpKind::Store, kX).step(kB, OpKind::Load, kX);
  EXPECT_EQ(w.races(), "1-2");
}

TEST(HappensBefore, AWakeUpOrdersWithoutBeingReversed) {
  Written w;
  w.step(kB, OpKind::Store, kX);
  w.step(kA, {Touch{kCv, 0, {}, OpKind::Signal, effect(OpKind::Signal)},
              Touch{kCv, 0, kB, OpKind::Wake, effect(OpKind::Wake)}});
  w.step(kA, OpKind::Store, kY);
  w.step(kB, OpKind::Load, kY);
  const HappensBefore& order = w.order();
  EXPECT_TRUE(order.before(1, 3));
  EXPECT_EQ(w.races(), "2-3") << "the store to y comes after the wake-up, so it can still come later";
}

TEST(HappensBefore, DataChoicesBelongToTheirTransition) {
  Written w;
  w.step(kA, OpKind::Store, kX).value(2, {Touch{kY, 0, {}, OpKind::Store, Effect::Write}});
  w.step(kB, OpKind::Load, kY);
  const HappensBefore& order = w.order();
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].values, std::vector<uint32_t>{2});
  EXPECT_EQ(order.touches(0).size(), 2u);
  EXPECT_EQ(w.races(), "0-1");
}

TEST(HappensBefore, MemoryIsReusedWithoutATrace) {
  Written waits, timed;
  waits.step(kA, OpKind::Store, kX).step(kB, OpKind::Store, kX).blocked(kC, OpKind::Lock, kM);
  // Another agent ends a wait with a time limit.
  timed.step(kA, OpKind::Wait, kCv)
      .step(kB, {{kCv, 0, {}, OpKind::Signal, Effect::Write}, {kCv, 0, kA, OpKind::Wake, Effect::None}});
  timed.option(kA, OpKind::TimerFire, kCv).step(kA, OpKind::Store, kX);
  HappensBefore order;
  std::vector<uint32_t> races;
  for (int i = 0; i < 2; ++i) {
    order.build(waits.execution());
    EXPECT_EQ(order.with_blocked(), 3u);
    EXPECT_EQ(order[2].agent, kC);
    EXPECT_EQ(order.touches(2).size(), 1u);
    EXPECT_TRUE(order.overtaken().empty());
    order.races(1, HappensBefore::Ancestors::Immediate, races);
    EXPECT_EQ(races, std::vector<uint32_t>{0});
    order.build(timed.execution());
    EXPECT_EQ(order.with_blocked(), 3u);
    ASSERT_EQ(order.overtaken().size(), 1u);
    EXPECT_EQ(order[order.overtaken()[0].limit].agent, kA);
  }
}

}  // namespace
}  // namespace slalom
