#include "vm/memory/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>

#include "base/rng.h"

namespace slalom::vm {
namespace {

TEST(Arena, NothingLiesInSomethingElse) {
  Arena arena;
  Rng rng(1);
  std::map<uint8_t*, size_t> taken;  // each is filled with the low byte of its size
  const auto is_intact = [&](const uint8_t* at, size_t size) {
    for (size_t i = 0; i < size; ++i)
      if (at[i] != static_cast<uint8_t>(size)) return false;
    return true;
  };
  for (unsigned round = 0; round < 4000; ++round) {
    if (!taken.empty() && rng.below(3) == 0) {
      auto one = taken.begin();
      std::advance(one, rng.below(taken.size()));
      ASSERT_TRUE(is_intact(one->first, one->second));
      arena.give_back(one->first, one->second);
      taken.erase(one);
      continue;
    }
    const size_t size = 1 + rng.below(Arena::kMost);
    auto* at = static_cast<uint8_t*>(arena.take(size));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % Arena::kLine, 0u);
    ASSERT_FALSE(taken.contains(at));
    std::memset(at, static_cast<int>(size & 0xff), size);
    taken[at] = size;
  }
  for (const auto& [at, size] : taken) EXPECT_TRUE(is_intact(at, size));
}

TEST(Arena, WhatIsGivenBackIsTakenAgain) {
  Arena arena;
  void* first = arena.take(100);
  void* second = arena.take(100);
  EXPECT_NE(first, second);
  arena.give_back(first, 100);
  EXPECT_NE(arena.take(300), first);
  EXPECT_EQ(arena.take(128), first);  // the same number of lines
}

}  // namespace
}  // namespace slalom::vm
