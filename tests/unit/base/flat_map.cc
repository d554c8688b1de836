#include "base/flat_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"

namespace slalom {
namespace {

template <typename Map>
void agrees_with_std_map() {
  Rng rng(1);
  Map map;
  std::map<uint64_t, uint32_t> model;
  for (int round = 0; round < 20; ++round) {
    const uint64_t range = uint64_t{1} << (round * 3);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t key = rng.below(range) * (round % 2 == 0 ? 1 : 4096) - 1;  // also all ones
      if (rng.below(2) == 0) {
        const auto value = static_cast<uint32_t>(rng.next());
        map[key] = value;
        model[key] = value;
      }
      const uint32_t* found = map.find(key);
      const auto expected = model.find(key);
      ASSERT_EQ(found != nullptr, expected != model.end());
      if (found != nullptr) {
        ASSERT_EQ(*found, expected->second);
      }
    }
    ASSERT_EQ(map.size(), model.size());
    std::map<uint64_t, uint32_t> all;
    map.for_each([&](uint64_t key, uint32_t value) { all[key] = value; });
    ASSERT_EQ(all, model);
    const Map copy = map;
    if (round % 3 == 2) {
      map.clear();
      ASSERT_TRUE(map.empty());
      model.clear();
      copy.for_each([&](uint64_t key, uint32_t) { ASSERT_FALSE(map.contains(key)); });
    }
  }
}

TEST(FlatMap, AgreesWithStdMap) {
  agrees_with_std_map<FlatMap<uint32_t>>();
}
TEST(FlatMap, AgreesWithStdMapWhereKeysLieTogether) {
  agrees_with_std_map<FlatMap<uint32_t, 2>>();
}

TEST(FlatMap, ForgetsHoweverOftenItIsCleared) {
  FlatMap<uint32_t> map;
  map[1'000'000] = 1;
  for (uint32_t i = 0; i < 200'000; ++i) {
    map.clear();
    ASSERT_FALSE(map.contains(1'000'000)) << i;
    ASSERT_EQ(map[i % 8], 0u) << i;
    map[i % 8] = i + 1;
  }
}

TEST(FlatMap, ClearedTableStartsWithFreshValues) {
  FlatMap<uint64_t> map;
  for (uint64_t key = 0; key < 5000; ++key) map[key] = key + 1;
  map.clear();
  map[3] = 7;
  map.clear();  // far too large now for what was in it
  for (uint64_t key = 0; key < 100; ++key) EXPECT_EQ(map[key], 0u);
  EXPECT_EQ(map.size(), 100u);
}

TEST(FlatMap, WhatWasMovedFromIsEmptyAndCanBeUsed) {
  FlatMap<uint32_t> from;
  for (uint64_t key = 0; key < 100; ++key) from[key] = static_cast<uint32_t>(key + 1);
  FlatMap<uint32_t> to = std::move(from);
  EXPECT_EQ(to.size(), 100u);
  EXPECT_EQ(*to.find(99), 100u);
  EXPECT_TRUE(from.empty());
  EXPECT_FALSE(from.contains(5));
  from[5] = 7;
  EXPECT_EQ(*from.find(5), 7u);
  to = std::move(from);
  EXPECT_EQ(to.size(), 1u);
  from.clear();
  from[6] = 8;
  EXPECT_EQ(from.size(), 1u);
}

}  // namespace
}  // namespace slalom
