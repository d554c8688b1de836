#include "learn/atomic_order.h"

#include <gtest/gtest.h>

#include <string>

#include "trace/program_objects.h"

namespace slalom {
namespace {

constexpr uint64_t kWord = 0x1000, kLock = 0x2000;

// An execution, and what it shows. An access is named by a letter, its place.
class Execution {
 public:
  Execution& access(uint32_t agent, char place, bool writes, uint64_t word = kWord) {
    Access access{};
    access.op_bits = static_cast<uint64_t>(writes ? OpKind::ReadModifyWrite : OpKind::AtomicLoad);
    access.address_bits = word;
    access.pc_bits = static_cast<uint64_t>(place);
    access.wrote = writes;
    order_.add(agent, access);
    return *this;
  }
  Execution& event(uint32_t agent, OpKind op, uint64_t object = kLock) {
    order_.add_event(agent, AtomicOrder::kNone, {.op = op, .object = ObjectId{object}});
    return *this;
  }
  Execution& tried(uint32_t agent, bool taken) {
    order_.add_event(agent, AtomicOrder::kNone,
                     {.op = OpKind::TryLock, .object = ObjectId{kLock}, .value = taken});
    return *this;
  }
  Execution& with(uint32_t agent, OpKind op, uint32_t other) {
    order_.add_event(agent, other, {.op = op});
    return *this;
  }
  Execution& locked(uint32_t agent, char place, bool writes, OpKind take = OpKind::Lock,
                    OpKind give = OpKind::Unlock) {
    return event(agent, take).access(agent, place, writes).event(agent, give);
  }
  std::string conflicting() const { return letters(order_.conflicting()); }
  std::string seen() const { return letters(order_.seen()); }

 private:
  static std::string letters(const std::vector<Place>& places) {
    std::string text;
    for (Place place : places) text += static_cast<char>(place.raw);
    return text;
  }
  AtomicOrder order_;
};

TEST(AtomicOrder, WithoutAnythingElseTwoThreadsConflict) {
  EXPECT_EQ(Execution().access(1, 'a', true).access(2, 'b', false).conflicting(), "ab");
  EXPECT_EQ(Execution().access(1, 'a', false).access(2, 'b', false).conflicting(), "");  // both read
  EXPECT_EQ(Execution().access(1, 'a', true).access(1, 'b', true).conflicting(), "");    // the same one
  EXPECT_EQ(Execution().access(1, 'a', true).access(2, 'b', true, kWord + 8).conflicting(), "");
  EXPECT_EQ(Execution().access(1, 'a', true).access(2, 'b', false).access(1, 'c', false).seen(), "abc");
}

TEST(AtomicOrder, ALockOrdersWhatIsUnderIt) {
  EXPECT_EQ(Execution().locked(1, 'a', true).locked(2, 'b', true).conflicting(), "");
  EXPECT_EQ(Execution().locked(1, 'a', true).access(2, 'b', false).conflicting(), "ab");
  EXPECT_EQ(Execution().locked(1, 'a', true).locked(2, 'b', true).access(1, 'c', false).conflicting(), "bc");
  // After an unlock it is no longer held; another lock is none of it.
  EXPECT_EQ(Execution()
                .event(1, OpKind::Lock)
                .event(1, OpKind::Unlock)
                .access(1, 'a', true)
                .locked(2, 'b', true)
                .conflicting(),
            "ab");
  EXPECT_EQ(
      Execution().locked(1, 'a', true).event(2, OpKind::Lock, kLock + 64).access(2, 'b', true).conflicting(),
      "ab");
  // That one came after the other by chance only: another schedule would let them meet.
  EXPECT_EQ(Execution()
                .locked(1, 'x', true)
                .access(1, 'a', true)
                .locked(2, 'y', false)
                .access(2, 'b', true)
                .conflicting(),
            "abxy");
}

TEST(AtomicOrder, ALockThatWasTriedInVainOrdersNothing) {
  EXPECT_EQ(Execution().locked(1, 'a', true).tried(2, true).access(2, 'b', true).conflicting(), "");
  EXPECT_EQ(Execution().locked(1, 'a', true).tried(2, false).access(2, 'b', true).conflicting(), "ab");
}

TEST(AtomicOrder, ReadersDoNotOrderEachOther) {
  const auto pair = [](bool first_writes, bool second_writes) {
    const auto take = [](bool writes) { return writes ? OpKind::WriteLock : OpKind::ReadLock; };
    const auto give = [](bool writes) { return writes ? OpKind::WriteUnlock : OpKind::ReadUnlock; };
    return Execution()
        .locked(1, 'a', true, take(first_writes), give(first_writes))
        .locked(2, 'b', true, take(second_writes), give(second_writes))
        .conflicting();
  };
  EXPECT_EQ(pair(true, true), "");
  EXPECT_EQ(pair(true, false), "");
  EXPECT_EQ(pair(false, true), "");
  EXPECT_EQ(pair(false, false), "ab");
}

TEST(AtomicOrder, TheStartAndTheEndOfThreadsOrder) {
  EXPECT_EQ(Execution().access(0, 'a', true).with(0, OpKind::Spawn, 1).access(1, 'b', true).conflicting(),
            "");
  EXPECT_EQ(Execution().with(0, OpKind::Spawn, 1).access(0, 'a', true).access(1, 'b', true).conflicting(),
            "ab");
  EXPECT_EQ(Execution()
                .with(0, OpKind::Spawn, 1)
                .access(1, 'b', true)
                .with(0, OpKind::Join, 1)
                .access(0, 'a', true)
                .conflicting(),
            "");
  // It has ended, but nobody waited for that.
  EXPECT_EQ(Execution()
                .with(0, OpKind::Spawn, 1)
                .access(1, 'b', true)
                .event(1, OpKind::Exit, 0)
                .access(0, 'a', true)
                .conflicting(),
            "ab");
  // What the first thread did is ordered before a thread that was started after it was joined.
  Execution relay;
  relay.with(0, OpKind::Spawn, 1).access(1, 'a', true).with(0, OpKind::Join, 1).with(0, OpKind::Spawn, 2);
  EXPECT_EQ(relay.access(2, 'b', true).conflicting(), "");
}

TEST(AtomicOrder, SignalsInterruptAnywhere) {
  EXPECT_EQ(Execution().access(1, 'a', true).event(1, OpKind::SemWait, kSignalObject).conflicting(), "a");
  // Those of a thread; what else is about threads is none.
  const uint64_t thread = AgentId::initial(0).child(0).raw, its_signals = AgentId{thread}.interrupt(0).raw;
  for (const OpKind op : {OpKind::SemPost, OpKind::SemWait})
    EXPECT_EQ(Execution().access(1, 'a', true).event(1, op, its_signals).conflicting(), "a");
  EXPECT_EQ(Execution().access(1, 'a', true).event(1, OpKind::CpuUse, thread).conflicting(), "");
}

TEST(AtomicOrder, AForkedProcessInheritsEverything) {
  EXPECT_EQ(Execution().access(1, 'a', true).event(1, OpKind::Spawn, kForkObject).conflicting(), "a");
  EXPECT_EQ(Execution().access(1, 'a', true).event(1, OpKind::CpuUse, kForkObject).conflicting(), "");
}

TEST(AtomicOrder, TooManyAreTakenToConflict) {
  Execution many;
  for (uint32_t agent = 1; agent < 30; ++agent) many.locked(agent, 'a', true);
  EXPECT_EQ(many.conflicting(), "a");
}

}  // namespace
}  // namespace slalom
