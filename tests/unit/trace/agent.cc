#include "trace/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/rng.h"

namespace slalom {
namespace {

TEST(AgentId, Paths) {
  EXPECT_EQ(AgentId{}.path(), "-");
  EXPECT_EQ(AgentId::initial(0).path(), "1");
  EXPECT_EQ(AgentId::initial(0).child(1).path(), "1.2");
  EXPECT_EQ(AgentId::initial(2).child(0).child(200).path(), "3.1.201");
  EXPECT_EQ(AgentId::initial(0).interrupt(0).path(), "1.irq0");
  EXPECT_EQ(AgentId::initial(0).interrupt(46).path(), "1.irq46");
  EXPECT_FALSE(AgentId{});
  EXPECT_TRUE(AgentId::initial(0));
}

TEST(AgentId, LongPathsAndLargeOrdinalsAreFolded) {
  EXPECT_EQ(AgentId::initial(0).child(201).path().front(), '#');
  EXPECT_EQ(AgentId::initial(0).interrupt(47).path().front(), '#');
  AgentId deep;
  for (int level = 0; level < 8; ++level) deep = deep.child(0);
  EXPECT_EQ(deep.path(), "1.1.1.1.1.1.1.1");
  EXPECT_EQ(deep.child(0).path().front(), '#');
  EXPECT_EQ(deep.child(0).child(1).path().front(), '#');
}

TEST(AgentId, FoldedPathsStillDiffer) {
  std::set<AgentId> seen;
  AgentId deep;
  for (int level = 0; level < 8; ++level) deep = deep.child(0);
  for (uint32_t a = 0; a < 60; ++a) {
    EXPECT_TRUE(seen.insert(deep.child(a)).second);
    EXPECT_TRUE(seen.insert(deep.interrupt(a)).second);
    EXPECT_TRUE(seen.insert(deep.child(a).child(a)).second);
    EXPECT_TRUE(seen.insert(AgentId::initial(201 + a)).second);
  }
}

// Ids are ordered like their paths, level by level. This makes options() reproducible.
TEST(AgentId, OrderIsThatOfPaths) {
  Rng rng(4);
  using Path = std::vector<uint32_t>;
  const auto random_path = [&] {
    Path path(1 + rng.below(8));
    for (uint32_t& ordinal : path) ordinal = static_cast<uint32_t>(rng.below(rng.below(4) == 0 ? 201 : 3));
    return path;
  };
  const auto id_of = [](const Path& path) {
    AgentId id;
    for (const uint32_t ordinal : path) id = id.child(ordinal);
    return id;
  };
  for (int i = 0; i < 5000; ++i) {
    const Path a = random_path();
    const Path b = random_path();
    ASSERT_EQ(id_of(a) <=> id_of(b), a <=> b);
  }
}

}  // namespace
}  // namespace slalom
