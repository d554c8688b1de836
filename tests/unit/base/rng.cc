#include "base/rng.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace slalom {
namespace {

// A second implementation, as its authors describe it: SplitMix64 fills the state of xoshiro256**.
struct Reference {
  uint64_t s[4];
  explicit Reference(uint64_t x) {
    for (uint64_t& word : s) {
      uint64_t z = (x += 0x9e3779b97f4a7c15);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }
  uint64_t next() {
    const auto left = [](uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
    const uint64_t result = left(s[1] * 5, 7) * 9;
    const uint64_t a = s[0], b = s[1], c = s[2], d = s[3];
    s[0] = a ^ b ^ d;
    s[1] = a ^ b ^ c;
    s[2] = a ^ c ^ (b << 17);
    s[3] = left(b ^ d, 45);
    return result;
  }
};

TEST(Rng, IsXoshiro256StarStar) {
  Rng rng(42, 7);
  Reference reference(combine(42, 7));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(rng.next(), reference.next());
}

// Saved searches and printed seeds rely on these values: they must never change.
TEST(Rng, KnownAnswers) {
  Rng rng(1);
  EXPECT_EQ(rng.next(), 8643631643520867330u);
  EXPECT_EQ(rng.next(), 17511496109275010351u);
  Rng other(1, 1);
  EXPECT_EQ(other.next(), 10863604151095509800u);
}

TEST(Rng, StreamsOfNeighbouringSeedsDiffer) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (uint64_t stream = 0; stream < 100; ++stream) first.insert(Rng(seed, stream).next());
  EXPECT_EQ(first.size(), 10'000u);
}

TEST(Rng, BelowIsUniform) {
  constexpr int kDraws = 100'000;
  for (const uint64_t bound : {2u, 3u, 10u}) {
    Rng rng(5, bound);
    std::map<uint64_t, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[rng.below(bound)];
    ASSERT_EQ(counts.size(), bound);
    ASSERT_LT(counts.rbegin()->first, bound);
    const double expected = static_cast<double>(kDraws) / static_cast<double>(bound);
    double chi_square = 0;
    for (const auto& [value, count] : counts)
      chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, 27.9) << bound;  // 99.9 % of 9 degrees of freedom
  }
}

// With bound 3 * 2^62, taking the remainder would make the lowest third twice as likely.
TEST(Rng, BelowHasNoBiasForLargeBounds) {
  Rng rng(9);
  constexpr uint64_t kThird = uint64_t{1} << 62;
  constexpr int kDraws = 30'000;
  int counts[3] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(3 * kThird) / kThird];
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 3, 500);
}

TEST(Rng, BelowOneIsZero) {
  Rng rng(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0u);
}

TEST(Hash, KnownAnswers) {
  EXPECT_EQ(mix(0), 0u);
  EXPECT_EQ(mix(0x9e3779b97f4a7c15), 0xe220a8397b1dcdafu);  // SplitMix64's first output for seed 0
  EXPECT_EQ(combine(1, 2), 3497101601492490161u);
  EXPECT_EQ(hash_text("slalom"), 370737462579624235u);
}

TEST(Hash, OrderAndLengthMatter) {
  EXPECT_NE(combine(1, 2), combine(2, 1));
  EXPECT_NE(combine(1, 2, 3), combine(1, 3, 2));
  EXPECT_EQ(combine(1, 2, 3), combine(combine(1, 2), 3));
  EXPECT_NE(hash_text("ab"), hash_text("ba"));
  EXPECT_NE(hash_text(""), hash_text(std::string_view("\0", 1)));
  EXPECT_EQ(hash_text("\x80"), mix((0xcbf29ce484222325u ^ 0x80) * 0x100000001b3u));  // not sign-extended
}

TEST(Hash, FewCollisionsAmongSmallNumbers) {
  std::set<uint64_t> seen;
  for (uint64_t a = 0; a < 200; ++a)
    for (uint64_t b = 0; b < 200; ++b) seen.insert(combine(a, b));
  EXPECT_EQ(seen.size(), 40'000u);
}

}  // namespace
}  // namespace slalom
