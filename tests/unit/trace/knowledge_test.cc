#include "trace/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace slalom {
namespace {

std::vector<Place> random_places(Rng& rng) {
  std::vector<Place> places;
  for (uint64_t place = 0; place < 12; ++place)
    if (rng.below(3) == 0) places.push_back(Place{place});
  return places;
}

Knowledge random_knowledge(Rng& rng) {
  return {random_places(rng), random_places(rng), random_places(rng), rng.below(3) == 0};
}

Knowledge merged(Knowledge a, const Knowledge& b) {
  a.merge(b);
  return a;
}

TEST(Knowledge, MergesInAnyOrder) {
  Rng rng(1);
  for (int i = 0; i < 500; ++i) {
    const Knowledge a = random_knowledge(rng), b = random_knowledge(rng), c = random_knowledge(rng);
    ASSERT_EQ(merged(a, b), merged(b, a));
    ASSERT_EQ(merged(merged(a, b), c), merged(a, merged(b, c)));
    ASSERT_EQ(merged(a, a), a);
    ASSERT_EQ(merged(a, {}), a);
    ASSERT_EQ(merged({}, a), a);
    const Knowledge both = merged(a, b);
    for (const auto part : {&Knowledge::places, &Knowledge::racing, &Knowledge::atomics}) {
      ASSERT_TRUE(std::ranges::is_sorted(both.*part));
      for (uint64_t place = 0; place < 12; ++place)
        ASSERT_EQ(
            std::ranges::count(both.*part, Place{place}),
            std::ranges::count(a.*part, Place{place}) == 1 || std::ranges::count(b.*part, Place{place}) == 1);
    }
    ASSERT_EQ(both.guessed, a.guessed || b.guessed);
  }
}

TEST(Knowledge, AnAtomicOperationIsOrderedIfNoExecutionShowsAConflict) {
  Knowledge first{.places = {Place{2}}, .racing = {}, .atomics = {Place{1}, Place{2}}};
  EXPECT_EQ(first.ordered_atomics(), std::vector<Place>{Place{1}});
  first.merge({.places = {Place{1}, Place{9}}, .racing = {}, .atomics = {Place{1}, Place{3}}});
  EXPECT_EQ(first.ordered_atomics(), std::vector<Place>{Place{3}});
}

TEST(Knowledge, HasThePlacesOfDataRacesOnly) {
  Verdict race;
  race.kind = BugKind::DataRace;
  race.evidence = {{Step{1}, {}, Place{7}, ""}, {Step{2}, {}, Place{3}, ""}, {Step{3}, {}, Place{7}, ""}};
  Verdict other = race;
  other.kind = BugKind::Deadlock;
  other.evidence[0].pc = Place{5};
  Knowledge knowledge;
  knowledge.add_race(other);
  EXPECT_EQ(knowledge, Knowledge{});
  knowledge.add_race(race);
  EXPECT_EQ(knowledge.racing, (std::vector<Place>{Place{3}, Place{7}}));
  knowledge.clear();
  EXPECT_EQ(knowledge, Knowledge{});
}

TEST(MergePlaces, SaysWhetherAnyIsNew) {
  std::vector<Place> places;
  EXPECT_FALSE(merge_places(places, {}));
  EXPECT_TRUE(merge_places(places, {Place{1}, Place{3}}));
  EXPECT_FALSE(merge_places(places, {Place{3}}));
  EXPECT_TRUE(merge_places(places, {Place{2}, Place{3}}));
  EXPECT_EQ(places, (std::vector<Place>{Place{1}, Place{2}, Place{3}}));
}

}  // namespace
}  // namespace slalom
