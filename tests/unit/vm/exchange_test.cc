// What is told of exchanges that succeed and that fail: a CMPXCHG that fails only reads.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kWord = 0x100100;
using ToldValues = std::vector<std::pair<uint64_t, bool>>;  // the value, and whether it was written

struct ToldSink final : TapSink {
  void on_batch(const Cpu&, std::span<const Access> accesses, uint64_t) override {
    for (const Access& access : accesses) told.emplace_back(access.value, access.wrote != 0);
  }
  void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}
  ToldValues told;
};

// Of one instruction with [kWord], which holds 5, with these values of EAX and ECX.
ToldValues told_of(uint32_t eax, uint32_t ecx, std::initializer_list<int> instruction) {
  TinyCode code;
  code.add({0xb8}).word(eax).add({0xb9}).word(ecx).add(instruction).word(kWord).add({0xf4});
  const auto pc = make_tiny(code.bytes, 1);
  const uint8_t five[] = {5};
  pc->ram().write(kWord, five);
  ToldSink sink;
  Tap tap(sink, {.rings = 1});
  pc->attach(&tap);
  pc->run(4);
  pc->attach(nullptr);
  return sink.told;
}

TEST(Exchanges, OneThatFailsOnlyReads) {
  const auto compare = {0xf0, 0x0f, 0xb1, 0x0d};  // lock cmpxchg [kWord], ecx
  EXPECT_EQ(told_of(5, 7, compare), (ToldValues{{5, false}, {7, true}}));
  EXPECT_EQ(told_of(4, 7, compare), (ToldValues{{5, false}}));
}

TEST(Exchanges, WithoutAConditionAlwaysWrite) {
  const auto exchange = {0x87, 0x0d};  // xchg [kWord], ecx
  EXPECT_EQ(told_of(0, 7, exchange), (ToldValues{{5, false}, {7, true}}));
  EXPECT_EQ(told_of(0, 5, exchange), (ToldValues{{5, false}, {5, true}}));
}

}  // namespace
}  // namespace slalom::vm
