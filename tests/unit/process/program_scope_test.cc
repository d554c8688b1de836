#include "process/program_scope.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace slalom {
namespace {

using preload::ScopedCode;
using Kind = ScopedCode::Kind;

TEST(ProgramScope, Names) {
  for (const char* text :
       {"module:x", "module:libx.so.1", "function:f", "function:A::b*", "function:operator*"})
    EXPECT_TRUE(check_scope(text).ok()) << text;
  for (const char* text : {"", "f", "module:", "function:*", "function:a*b", "module:x*", "Module:x"})
    EXPECT_FALSE(check_scope(text).ok()) << text;
}

// What counts for one address, by the words of the header.
const ScopedCode* covering(const std::vector<ScopedCode>& parts, uint64_t address) {
  const ScopedCode* best = nullptr;
  for (const ScopedCode& part : parts) {
    if (address < part.begin || address >= part.end) continue;
    const uint64_t size = part.end - part.begin, least = best == nullptr ? 0 : best->end - best->begin;
    if (best == nullptr || size < least || (size == least && part.kind > best->kind)) best = &part;
  }
  return best;
}

TEST(ProgramScope, SmallerPartsCoverLargerOnes) {
  Rng rng(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<ScopedCode> parts;
    for (uint32_t i = 1; i <= 6; ++i) {
      const uint64_t begin = rng.below(40);
      // Atomic ones inside of each other are one: not here.
      parts.push_back(
          {begin, begin + 1 + rng.below(20), i, i == 1 ? Kind::Atomic : Kind::Scope, false, false});
    }
    const std::vector<ScopedCode> flat = without_overlaps(parts);
    for (size_t i = 1; i < flat.size(); ++i) ASSERT_LE(flat[i - 1].end, flat[i].begin);
    for (uint64_t address = 0; address < 64; ++address) {
      const ScopedCode* wanted = covering(parts, address);
      const ScopedCode* got = covering(flat, address);
      ASSERT_EQ(wanted == nullptr, got == nullptr) << address;
      if (got == nullptr) continue;
      ASSERT_EQ(got->kind, wanted->kind) << address;
    }
  }
}

TEST(ProgramScope, WhatIsInlinedIntoAtomicCodeIsOneStepWithIt) {
  const std::vector<ScopedCode> flat = without_overlaps({{0, 100, 0, Kind::Atomic, true, false},
                                                         {10, 50, 1, Kind::Atomic, false, false},
                                                         {20, 30, 2, Kind::Atomic, false, false}});
  ASSERT_EQ(flat.size(), 3u);  // of a module, its function, and no more
  EXPECT_EQ(flat[1].function, 1u);
  EXPECT_EQ(flat[1].end, 50u);
}

TEST(ProgramScope, KnowsTheScopeAroundWhatIsInlined) {
  const std::vector<ScopedCode> flat =
      without_overlaps({{10, 50, 1, Kind::Scope, false, false}, {20, 30, 2, Kind::Atomic, false, false}});
  ASSERT_EQ(flat.size(), 3u);
  EXPECT_EQ(flat[1].kind, Kind::Atomic);
  EXPECT_TRUE(flat[1].in_scope);
}

}  // namespace
}  // namespace slalom
