#include "learn/conflicts.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "unit/learn/stream.h"

namespace slalom {
namespace {

using test::kX;
using test::kY;
using test::LearnerFeed;

TEST(ConflictLearner, FindsAWriteAndAnotherAgentsAccess) {
  ConflictLearner learner(false);
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).load(1, 'b', kX).places(), "ab");
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).store(1, 'b', kX).places(), "ab");
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).store(1, 'b', kX).places(), "ab");
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).load(1, 'b', kX).places(), "");    // both read
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).load(0, 'b', kX).places(), "");   // one agent
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).store(1, 'b', kY).places(), "");  // other memory
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX, 1).store(1, 'b', kX + 7, 1).places(),
            "ab");  // one granule
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).store(1, 'b', kX + 8).places(), "");
}

TEST(ConflictLearner, KeepsTheLastWriteAndTheLastReadSince) {
  ConflictLearner learner(false);
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).store(0, 'b', kX).load(1, 'c', kX).places(), "bc");
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).load(2, 'b', kX).store(1, 'c', kX).places(), "bc");
  // The read came before a write of its own agent.
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).store(0, 'b', kX).store(1, 'c', kX).places(), "bc");
}

TEST(ConflictLearner, AnAgentsStartAndEndOrder) {
  ConflictLearner learner(false);
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).spawn(0, 1).store(1, 'b', kX).places(), "");
  EXPECT_EQ(LearnerFeed(learner).spawn(0, 1).store(0, 'a', kX).store(1, 'b', kX).places(), "ab");
  EXPECT_EQ(LearnerFeed(learner).spawn(0, 1).store(1, 'a', kX).exit(1).load(0, 'b', kX).places(), "");
  EXPECT_EQ(LearnerFeed(learner).spawn(0, 1).store(1, 'a', kX).exit(2).load(0, 'b', kX).places(), "ab");
}

TEST(ConflictLearner, CollectsAtomicOperationsOnRequest) {
  for (const bool collects : {false, true}) {
    ConflictLearner learner(collects);
    LearnerFeed feed(learner);
    const auto update = [&](uint32_t agent, char place, uint64_t address) {
      feed.access(LearnerFeed::id(agent), LearnerFeed::make(place, OpKind::ReadModifyWrite, address));
    };
    update(0, 'a', kX);  // nothing orders these two
    update(1, 'b', kX);
    for (const uint32_t agent : {0u, 1u}) {
      feed.event({.agent = LearnerFeed::id(agent), .op = OpKind::Lock, .object = ObjectId{0x3000}});
      update(agent, static_cast<char>('c' + agent), kY);
      feed.event({.agent = LearnerFeed::id(agent), .op = OpKind::Unlock, .object = ObjectId{0x3000}});
    }
    feed.store(0, 'p', 0x4000).load(1, 'q', 0x4000);
    EXPECT_EQ(feed.places(), collects ? "abpq" : "pq");
    EXPECT_EQ(feed.atomics(), collects ? "abcd" : "");
    EXPECT_EQ(test::letters(learner.knowledge().ordered_atomics()), collects ? "cd" : "");
  }
}

// A slow second implementation, and batches of any length.
TEST(ConflictLearner, AgreesWithItsDefinitionHoweverAccessesAreBatched) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    struct One {
      uint32_t agent;
      Access access;
    };
    std::vector<One> all;
    for (int i = 0; i < 60; ++i) {
      const auto place = static_cast<char>('A' + rng.below(50));
      all.push_back({static_cast<uint32_t>(rng.below(3)),
                     LearnerFeed::make(place, rng.below(3) == 0 ? OpKind::Store : OpKind::Load,
                                       kX + 4 * rng.below(30), 4)});
    }
    std::set<Place> expected;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto meets = [&](size_t j) {
        return all[j].access.address().raw / 8 == all[i].access.address().raw / 8;
      };
      bool read = false;
      for (size_t j = i; j-- > 0;) {
        if (!meets(j)) continue;
        const bool write = all[j].access.wrote != 0;
        if ((write || (all[i].access.wrote && !read)) && all[j].agent != all[i].agent)
          expected.insert({all[i].access.pc(), all[j].access.pc()});
        if (write) break;
        read = true;
      }
    }
    found += expected.size();
    ConflictLearner learner(false);
    learner.reset();
    for (size_t i = 0; i < all.size();) {
      std::vector<Access> batch;
      const size_t first = i;
      do {
        batch.push_back(all[i].access);
        batch.back().retired = i++ - first;
      } while (i < all.size() && all[i].agent == all[first].agent && rng.below(3) != 0);
      learner.on_accesses(batch, {LearnerFeed::id(all[first].agent), 0, Step{first}});
    }
    ASSERT_EQ(learner.knowledge().places, std::vector<Place>(expected.begin(), expected.end())) << seed;
  }
  EXPECT_GT(found, 1000u);
}

TEST(ConflictLearner, ResetForgetsTheExecution) {
  ConflictLearner learner(true), fresh(true);
  const auto feed = [](ConflictLearner& to) {
    return LearnerFeed(to).spawn(0, 2).store(2, 'a', kX).exit(2).load(1, 'b', kX).places();
  };
  LearnerFeed(learner).spawn(2, 1).store(1, 'x', kX).store(0, 'y', kX).exit(1);
  EXPECT_EQ(feed(learner), feed(fresh));
  EXPECT_EQ(learner.knowledge(), fresh.knowledge());
}

}  // namespace
}  // namespace slalom
