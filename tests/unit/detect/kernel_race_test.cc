// Data races of kernels: hand-written streams of accesses, each with an ordered twin.
#include <gtest/gtest.h>

#include "detect/detector_set.h"
#include "unit/detect/kernel_stream.h"

namespace slalom::test {
namespace {

using Mode = KernelRaceOptions::Mode;

const Titles kRace = {"data race: m:reader / m:writer"};

TEST(KernelRace, TitleDetailAndEvidence) {
  Stream s;
  s.store(0, "m:writer.isra.0+0x12", kX, 8, 0x1234).load(1, "m:reader+0x8", kX, 4, 0x1234);
  const auto verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].title, kRace[0]);
  EXPECT_EQ(verdicts[0].kind, BugKind::DataRace);
  EXPECT_EQ(verdicts[0].severity, Severity::Race);
  EXPECT_EQ(
      verdicts[0].detail,
      "Nothing orders these accesses to 0x1000: m:writer.isra.0+0x12 (store of 8 bytes, value 0x1234) and "
      "m:reader+0x8 (load of 4 bytes, value 0x1234), simultaneously. Marked (READ_ONCE and the like) or not: "
      "unknown without their source.\ncpu1 in m:writer.isra.0+0x12; holds no lock.\ncpu2 in m:reader+0x8; "
      "holds no lock.");
  ASSERT_EQ(verdicts[0].evidence.size(), 2u);
  EXPECT_EQ(verdicts[0].evidence[0].step, Step{0});
  EXPECT_EQ(verdicts[0].evidence[1].agent, Stream::id(1));
}

TEST(KernelRace, MarkedSidesAreToldApart) {
  using Marking = Names::Marking;
  const auto race = [](Marking store, Marking load) {
    Stream s;
    s.store(0, "m:writer+0x12", kX, 4, 2).load(1, "m:reader+0x8", kX, 4, 2);
    s.places.markings[{"m:writer+0x12", true}] = store;
    s.places.markings[{"m:reader+0x8", false}] = load;
    return s.verdicts().at(0);
  };
  const Verdict half = race(Marking::Marked, Marking::Plain);
  EXPECT_EQ(half.severity, Severity::Race);
  EXPECT_NE(half.detail.find("m:writer+0x12 (store of 4 bytes, marked, value 0x2)"), std::string::npos);
  EXPECT_NE(half.detail.find("m:reader+0x8 (load of 4 bytes, plain, value 0x2)"), std::string::npos);
  EXPECT_EQ(half.detail.find("unknown"), std::string::npos);
  const Verdict both = race(Marking::Marked, Marking::Marked);
  EXPECT_EQ(both.severity, Severity::Suspicion);
  EXPECT_EQ(both.title, half.title);
  EXPECT_NE(both.detail.find("Both are marked"), std::string::npos);
  EXPECT_EQ(race(Marking::Marked, Marking::Unknown).severity, Severity::Race);
}

TEST(KernelRace, AMarkedPairIsNeverTheFirstOfItsGroup) {
  using Marking = Names::Marking;
  Stream s;
  s.store(0, "m:a+0x1", kX, 4, 2).load(1, "m:b+0x8", kX, 4, 2).load(2, "m:c+0x8", kX, 4, 2);
  s.places.markings[{"m:a+0x1", true}] = s.places.markings[{"m:b+0x8", false}] = Marking::Marked;
  s.places.markings[{"m:c+0x8", false}] = Marking::Plain;
  EXPECT_EQ(s.titles(), Titles{"data race: m:a / m:c"});
}

TEST(KernelRace, BothSidesHaveTheirCallersAndLocks) {
  constexpr uint64_t kStack = 0xffff'c900'0000'7f00;
  Stream s;
  s.call(0, "do_syscall_64+0x5", "m:ioctl", kStack).call(0, "m:ioctl+0x10", "m:writer", kStack - 16);
  s.event(0, OpKind::Lock, "m:writer+0x2", 0x77, 0, "spin_lock");
  s.event(0, OpKind::ReadLock, "m:writer+0x4", 0x99, 0, "rcu_read_lock");
  // An interrupt on the same stack that ends without a return.
  const AgentId interrupt = Stream::id(0).interrupt(1);
  s.interrupt(interrupt, 0, 0xec);
  s.add(interrupt, {s.make(OpKind::Call, "entry+0x1", s.places.number("tick").raw, false, 0, kStack - 64)});
  s.store(0, "m:writer+0x8", kX);
  s.event(0, OpKind::Unlock, "m:writer+0x9", 0x77, 0, "spin_unlock");
  s.call(1, "m:ioctl+0x10", "m:other", kStack + 0x10000).ret(1, "m:other+0x1", kStack + 0x10008);
  s.load(1, "m:reader+0x8", kX);
  const auto verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 1u);
  const std::string& detail = verdicts[0].detail;
  EXPECT_EQ(detail.substr(detail.find('\n') + 1),
            "cpu1 in m:writer+0x8 <- m:ioctl+0x10; holds 0x77, RCU.\ncpu2 in m:reader+0x8; holds no lock.");
}

TEST(KernelRace, ALockThatWasTriedInVainIsNotHeld) {
  for (const bool taken : {true, false}) {
    Stream s;
    s.store(0, "m:writer+0x8", kX);
    s.call(1, "m:ioctl+0x10", "m:reader", 0xffff'c900'0000'7f00);
    s.event(1, OpKind::TryLock, "m:reader+0x2", 0x77, taken ? 1 : 0, "spin_trylock");
    s.load(1, "m:reader+0x8", kX);
    const auto verdicts = s.verdicts();
    ASSERT_EQ(verdicts.size(), 1u);
    const std::string& detail = verdicts[0].detail;
    EXPECT_NE(detail.find(taken ? "holds 0x77." : "holds no lock.", detail.find("cpu2 in")),
              std::string::npos)
        << detail;
  }
}

TEST(KernelRace, TheKernelsOwnCallersAndStatisticsAreLeftOut) {
  for (const bool internal : {true, false}) {
    Stream s;
    s.call(0, "x+0x1", internal ? "__schedule" : "m:go", 0xffff'c900'0000'7f00).store(0, "helper+0x1", kX);
    s.load(1, "m:reader", kX);
    EXPECT_EQ(s.titles().size(), internal ? 0u : 1u);
  }
}

TEST(KernelRace, ALockOrders) {
  for (const bool both : {true, false}) {
    Stream s;
    s.locked(0, kLock).store(0, "m:writer", kX).unlock(0, kLock);
    if (both) s.failed_exchange(1, kLock).locked(1, kLock);
    s.load(1, "m:reader", kX);
    EXPECT_EQ(s.titles(), both ? Titles{} : kRace);
  }
  Stream other;  // another lock does not order them
  other.locked(0, kLock).store(0, "m:writer", kX).unlock(0, kLock);
  other.locked(1, kLock + 8).load(1, "m:reader", kX);
  EXPECT_EQ(other.titles(), kRace);
}

TEST(KernelRace, AfterTheUnlockNothingIsOrdered) {
  Stream s;
  s.locked(0, kLock).unlock(0, kLock).store(0, "m:writer", kX).locked(1, kLock).load(1, "m:reader", kX);
  EXPECT_EQ(s.titles(), kRace);
}

TEST(KernelRace, ALoadOfASyncVariableAcquires) {
  for (const bool sync : {true, false}) {
    Stream s;
    if (sync) s.locked(1, kLock);
    s.store(0, "m:writer", kX).store(0, "flag_set", kLock, 4, 1);
    s.load(1, "flag_get", kLock, 4, 1).load(1, "m:reader", kX);
    EXPECT_EQ(s.titles(),
              sync ? Titles{} : (Titles{"data race: m:reader / m:writer", "data race: flag_get / flag_set"}));
  }
}

TEST(KernelRace, WhatIsEverLockedNeverRaces) {
  Stream s;
  s.store(0, "m:init", kLock, 4).load(1, "m:peek", kLock, 4).locked(0, kLock);
  EXPECT_EQ(s.titles(), Titles{});
  s.load(1, "m:copy", kLock, 8).store(0, "m:writer", kLock + 4, 4);  // the rest of the cell can race
  EXPECT_EQ(s.titles(), Titles{"data race: m:copy / m:writer"});
}

TEST(KernelRace, AnInterruptIsItsCpu) {
  for (const int vector : {0x30, 0xec}) {
    const auto context = [&](int cpu) {
      return Stream::id(cpu).interrupt(vector >= 0xd0 ? static_cast<uint32_t>(vector) - 0xd0
                                                      : 0x100u + static_cast<uint32_t>(vector));
    };
    for (const int cpu : {0, 1}) {
      Stream s;
      s.load(1, "elsewhere", kY).store(0, "m:writer", kX).interrupt(context(cpu), cpu, vector);
      s.add(context(cpu), {s.make(OpKind::Load, "m:reader", kX, false, 8, 0)});
      EXPECT_EQ(s.titles(), cpu == 0 ? Titles{} : kRace) << vector;
    }
  }
}

TEST(KernelRace, AnIpiComesAfterWhoeverRan) {
  for (const int vector : {0xfb, 0xec}) {
    Stream s;
    const AgentId context = Stream::id(1).interrupt(static_cast<uint32_t>(vector) - 0xd0);
    s.load(1, "elsewhere", kY).store(0, "m:writer", kX).interrupt(context, 1, vector);
    s.add(context, {s.make(OpKind::Load, "m:reader", kX, false, 8, 0)});
    EXPECT_EQ(s.titles(), vector == 0xfb ? Titles{} : kRace);
    // Later operations of the sender are not ordered.
    s.store(0, "m:writer2", kY + 64).load(1, "m:reader", kY + 64);
    EXPECT_EQ(s.titles().back(), vector == 0xfb ? "data race: m:reader / m:writer2" : kRace[0]);
  }
}

TEST(KernelRace, BytesNotGranules) {
  const auto race = [](uint64_t at, uint32_t size) {
    Stream s;
    return !s.store(0, "w", kX + 2, 2).load(1, "r", kX + at, size).titles().empty();
  };
  EXPECT_FALSE(race(0, 2));
  EXPECT_FALSE(race(4, 4));
  EXPECT_TRUE(race(0, 3));
  EXPECT_TRUE(race(3, 1));
  Stream wide;  // spans several cells
  EXPECT_EQ(wide.store(0, "w", kX + 4, 40).load(1, "r", kX + 40, 4).titles(), Titles{"data race: r / w"});
  Stream reads;
  EXPECT_EQ(reads.load(0, "a", kX).load(1, "b", kX).titles(), Titles{});
}

TEST(KernelRace, PhysicalAddressesCount) {
  Stream alias;
  alias.store(0, "m:writer", kX);
  alias.moved = 0x5000;
  EXPECT_EQ(alias.load(1, "m:reader", kX).titles(), Titles{});
  EXPECT_EQ(alias.load(1, "m:reader", kX - 0x5000).titles(), kRace);
}

TEST(KernelRace, SimultaneousOnesOnly) {
  for (const bool close : {true, false}) {
    Stream s;
    s.load(1, "before", kY);
    s.store(0, "m:writer", kX).store(0, "and_more", kY + 64);
    if (!close) s.load(1, "between", kY);
    s.load(1, "m:reader", kX);
    EXPECT_EQ(s.titles(), kRace);
    EXPECT_EQ(s.titles({.mode = Mode::Simultaneous}), close ? kRace : Titles{});
  }
}

TEST(KernelRace, SimultaneousOnesHaveADetectorOfTheirOwn) {
  for (const bool close : {true, false}) {
    Stream s;
    s.load(1, "before", kY).store(0, "m:writer", kX);
    if (!close) s.load(1, "between", kY);
    s.load(1, "m:reader", kX);
    for (const auto& [name, expected] :
         {std::pair("kernel-race-simultaneous", close ? kRace : Titles{}), std::pair("kernel-race", kRace)}) {
      const std::unique_ptr<DetectorSet> set = *select_detectors(s.places, name);
      for (size_t i = 0; i < s.items.size(); ++i)
        set->on_accesses(s.items[i].accesses, {s.items[i].agent, 0, Step{i}});
      set->on_end(Exited{});
      std::vector<Verdict> verdicts;
      set->harvest(verdicts);
      Titles titles;
      for (const Verdict& verdict : verdicts) titles.push_back(verdict.title);
      EXPECT_EQ(titles, expected) << name << ", close: " << close;
    }
  }
}

TEST(KernelRace, GroupsRanksAndIgnores) {
  Stream s;
  s.store(0, "m:writer", kX, 8, 1).load(1, "m:reader", kX, 8, 1);             // a flag
  s.store(0, "m:writer2", kX + 8, 8, 77).load(1, "m:reader", kX + 8, 8, 77);  // shares a place with the first
  s.store(0, "core_set", kY, 4, 3).store(1, "core_set", kY, 4, 3);            // another report
  s.store(0, "rcu_internal", kY + 64, 4).load(1, "m:peek", kY + 64, 4);       // ignored
  const auto verdicts = s.verdicts();
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].title, "data race: m:reader / m:writer2");
  EXPECT_NE(
      verdicts[0].detail.find("\nAlso m:writer (store of 8 bytes, value 0x1) and m:reader (load of 8 bytes, "
                              "value 0x1), simultaneously; perhaps benign: one side only tests a flag."),
      std::string::npos)
      << verdicts[0].detail;
  EXPECT_EQ(verdicts[1].title, "data race: core_set / core_set");
  EXPECT_NE(verdicts[1].detail.find("perhaps benign: both write the same value"), std::string::npos);
  EXPECT_EQ(s.titles({.ignore = {}}).size(), 3u);
  EXPECT_EQ(s.titles({.ignore = {"m:"}}), (Titles{"data race: core_set / core_set"}));
}

// Moving a task belongs to the scheduler; moving a mount does not.
TEST(KernelRace, NamesThatTheSchedulerSharesAreKept) {
  Stream s;
  s.store(0, "migrate_task_rq_fair", kX, 8, 7).load(1, "peek", kX, 8, 7);
  s.store(0, "propagate_mnt", kY, 8, 7).load(1, "detach_mounts", kY, 8, 7);
  EXPECT_EQ(s.titles(), (Titles{"data race: detach_mounts / propagate_mnt"}));
  EXPECT_EQ(s.titles({.ignore = {}}).size(), 2u);
}

TEST(KernelRace, WhatIsNoAccessIsSkipped) {
  Stream s;
  s.add(Stream::id(0), {s.make(OpKind::Call, "a", kX, false, 0, 0)});
  s.add(Stream::id(1), {s.make(OpKind::Return, "b", kX, false, 8, 0)});
  s.add(Stream::id(1), {s.make(OpKind::Store, "b", kX, true, 0, 0)});
  EXPECT_EQ(s.titles(), Titles{});
}

}  // namespace
}  // namespace slalom::test
