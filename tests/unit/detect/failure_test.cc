// Failed assertions, crashes, heap misuse, leaks, the set of detectors and the normal form of titles.
#include <gtest/gtest.h>

#include <set>

#include "detect/core/titles.h"
#include "unit/detect/script.h"

namespace slalom::test {
namespace {

using Titles = std::vector<std::string>;

TEST(Failure, AssertionsKeepTheirText) {
  for (const char* copy : {"worker#0", "worker#5"}) {
    Script s;
    s.load("first", "y", "first:1").load(copy, "x", "worker:3");
    s.end(Faulted{Faulted::Kind::Assertion, s.agent(copy), s.place("worker:4"), "x == 2"});
    const auto verdicts = s.verdicts();
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].kind, BugKind::Assertion);
    EXPECT_EQ(verdicts[0].title, "assertion failed at worker:4: x == 2");
    const std::vector<Evidence> expected = {{Step{1}, s.agent(copy), s.place("worker:4"), "x == 2"}};
    EXPECT_EQ(verdicts[0].evidence, expected);
    EXPECT_EQ(s.titles("deadlock,lost-wakeup,livelock,heap,race,leak"), Titles{});
    s.end(Exited{});
    EXPECT_EQ(s.titles(), Titles{});
  }
}

TEST(Failure, ChecksAtTheEndHaveNoPlace) {
  Script s;
  s.end(Faulted{Faulted::Kind::Assertion, {}, {}, "final check: an update was lost"});
  EXPECT_EQ(s.titles(), Titles{"assertion failed: final check: an update was lost"});
}

TEST(Failure, CrashesLoseTheirValues) {
  for (int index : {5, 17}) {
    Script s;
    s.end(Faulted{Faulted::Kind::Crash, s.agent("w"), s.place("w:4"),
                  fmt::format("index {} out of a[{}]", index, 3)});
    EXPECT_EQ(s.titles(), Titles{"crash at w:4: index N out of a[]"});
    EXPECT_EQ(s.verdicts().at(0).kind, BugKind::Crash);
  }
}

TEST(Titles, GenericNames) {
  EXPECT_EQ(generic_name("x"), "x");
  EXPECT_EQ(generic_name("x2"), "x2");
  EXPECT_EQ(generic_name("a[3]"), "a[]");
  EXPECT_EQ(generic_name("a[13][4].b[i]"), "a[][].b[i]");
  EXPECT_EQ(generic_name("heap(worker#0,1)[2]"), "heap[]");
  EXPECT_EQ(generic_name("heap(f(1),2)"), "heap");
  EXPECT_EQ(generic_name("heap(broken"), "heap(broken");
  EXPECT_EQ(generic_name("myheap(1)"), "myheap(1)");
  EXPECT_EQ(generic_name("cpu(worker#1)"), "cpu(worker)");
  EXPECT_EQ(generic_name("child@1.irq0"), "child");
  EXPECT_EQ(generic_text("bad address 0xdeadbeef of x2, size 8"), "bad address N of x2, size N");
}

Script heap_story(bool joined) {
  Script s;
  s.event(OpKind::Alloc, "main", "heap(main,0)", "main:1", {0, "", 4});
  s.event(OpKind::HeapUse, "reader#1", "heap(main,0)", "reader:1", {1, "", 0});
  if (!joined) s.event(OpKind::Free, "main", "heap(main,0)", "main:3", {1, "", 0});
  s.event(OpKind::HeapUse, "reader#1", "heap(main,0)", "reader:2", {joined ? 1u : 0u, "", 0});
  s.event(OpKind::HeapUse, "reader#2", "heap(main,0)", "reader:2", {joined ? 1u : 0u, "", 0});
  if (joined) s.event(OpKind::Free, "main", "heap(main,0)", "main:3", {1, "", 0});
  s.end(Exited{});
  return s;
}

TEST(Heap, UseAfterFreeOnceWithItsHistory) {
  Script s = heap_story(false);
  const auto verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].kind, BugKind::UseAfterFree);
  EXPECT_EQ(verdicts[0].title, "use after free of heap: used at reader:2, freed at main:3");
  const std::vector<Evidence> expected = {
      {Step{0}, s.agent("main"), s.place("main:1"), "allocates heap(main,0)"},
      {Step{2}, s.agent("main"), s.place("main:3"), "frees heap(main,0)"},
      {Step{3}, s.agent("reader#1"), s.place("reader:2"), "uses heap(main,0)"}};
  EXPECT_EQ(verdicts[0].evidence, expected);
  EXPECT_EQ(heap_story(true).titles(), Titles{});
  EXPECT_EQ(s.titles("failure,deadlock,lost-wakeup,livelock,race,leak"), Titles{});
}

TEST(Heap, DoubleFree) {
  Script s;
  s.event(OpKind::Alloc, "a", "heap(a,0)", "a:1", {0, "", 4});
  s.event(OpKind::Free, "a", "heap(a,0)", "a:2", {1, "", 0});
  s.end(Exited{});
  EXPECT_EQ(s.titles(), Titles{});
  s.event(OpKind::Free, "b", "heap(a,0)", "b:2", {0, "", 0});
  s.end(Exited{});
  EXPECT_EQ(s.titles(), Titles{"double free of heap: freed again at b:2, freed at a:2"});
  EXPECT_EQ(s.verdicts().at(0).kind, BugKind::DoubleFree);
}

TEST(Heap, AnObjectAllocatedAgainIsAnotherOne) {
  Script s;
  for (int life = 0; life < 2; ++life) {
    s.event(OpKind::Alloc, "a", "heap(a,0)", fmt::format("a:{}", 10 * life), {0, "", 4});
    s.event(OpKind::Free, "a", "heap(a,0)", fmt::format("a:{}", 10 * life + 1), {1, "", 0});
  }
  s.event(OpKind::HeapUse, "b", "heap(a,0)", "b:1", {0, "", 0}).end(Exited{});
  EXPECT_EQ(s.titles(), Titles{"use after free of heap: used at b:1, freed at a:11"});
}

// Objects with two names that are freed and used at the same places are two bugs. With the same name, they
// are one.
TEST(Heap, EveryObjectsNameIsABugOfItsOwn) {
  Script s;
  for (const char* object : {"queue[0]", "node[1]", "node[2]"}) {
    s.event(OpKind::Alloc, "a", object, "a:1", {0, "", 4})
        .event(OpKind::Free, "a", object, "a:2", {1, "", 0});
    s.event(OpKind::HeapUse, "b", object, "b:1", {0, "", 0});
  }
  s.end(Exited{});
  const std::vector<std::string> all = s.titles();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()),
            (std::set<std::string>{"use after free of node[]: used at b:1, freed at a:2",
                                   "use after free of queue[]: used at b:1, freed at a:2"}));
}

TEST(Leak, OnlyWhenAskedAndOnlyAfterANormalEnd) {
  Script s;
  for (int i = 0; i < 3; ++i) s.event(OpKind::Alloc, "a", fmt::format("heap(a,{})", i), "a:1", {0, "", 4});
  s.event(OpKind::Free, "a", "heap(a,1)", "a:2", {1, "", 0});
  s.event(OpKind::Alloc, "a", "heap(a,4)", "a:3", {1, "", 4});  // belongs to a library
  s.end(Exited{});
  EXPECT_EQ(s.titles("default"), Titles{});
  const auto verdicts = s.verdicts("leak");
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].title, "leak of heap allocated at a:1");
  EXPECT_EQ(verdicts[0].kind, BugKind::Leak);
  EXPECT_EQ(verdicts[0].severity, Severity::Suspicion);
  EXPECT_EQ(verdicts[0].detail, "2 of them are still allocated at the end.");
  EXPECT_EQ(verdicts[0].evidence.at(0).step, Step{0});
  s.end(Faulted{Faulted::Kind::Crash, s.agent("a"), s.place("a:3"), "bad"});
  EXPECT_EQ(s.titles("leak"), Titles{});
  s.event(OpKind::Free, "a", "heap(a,0)", "a:2", {1, "", 0});
  s.event(OpKind::Free, "a", "heap(a,2)", "a:2", {1, "", 0}).end(Exited{});
  EXPECT_EQ(s.titles("leak"), Titles{});
}

TEST(DetectorSet, SelectionByName) {
  const ScriptNames names;
  std::string every;
  for (const DetectorInfo& info : detector_catalogue()) {
    EXPECT_TRUE(select_detectors(names, info.name).ok()) << info.name;
    every += fmt::format("{}{}", every.empty() ? "" : ",", info.name);
  }
  EXPECT_TRUE(select_detectors(names, every).ok());
  for (const char* wrong : {"", "races", "race,", "race, deadlock", "race,,heap"}) {
    const auto set = select_detectors(names, wrong);
    ASSERT_FALSE(set.ok()) << wrong;
    EXPECT_NE(set.error().message.find("lost-wakeup, livelock, heap, race, leak"), std::string::npos)
        << set.error().message;
    for (const DetectorInfo& info : detector_catalogue())
      EXPECT_NE(set.error().message.find(info.name), std::string::npos) << info.name;
  }
}

TEST(DetectorSet, StatesOfOtherSetsAreRefused) {
  const ScriptNames names;
  auto heap = *select_detectors(names, "heap");
  auto race = *select_detectors(names, "race");
  auto both = *select_detectors(names, "heap,race");
  EXPECT_THROW(heap->restore(*race->save()), InternalError);
  EXPECT_THROW(heap->restore(*both->save()), InternalError);
}

}  // namespace
}  // namespace slalom::test
