// Accesses to the kernel's current stack are fast and not recorded if no one needs them. Which accesses are
// recorded must not depend on that. Compared with the slow path, which all accesses take that may be watched.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kStacks[] = {0x40000, 0x44000, 0x4c000};  // of 16 KiB, or regions of several stacks
constexpr uint32_t kElsewhere = 0x100000;

// Straight-line code that changes the stack pointer in all possible ways.
std::vector<uint8_t> random_code(Rng& rng, unsigned instructions) {
  std::vector<uint8_t> code;
  const auto add = [&](std::initializer_list<uint8_t> bytes) { code.insert(code.end(), bytes); };
  const auto word = [&](uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  const auto stack = [&] { return kStacks[rng.below(3)] + 0x1000 * static_cast<uint32_t>(1 + rng.below(3)); };
  const auto somewhere = [&] {
    return rng.below(4) == 0 ? kElsewhere + 4 * static_cast<uint32_t>(rng.below(16))
                             : stack() - 4 * static_cast<uint32_t>(rng.below(64));
  };
  for (unsigned i = 0; i < instructions; ++i) switch (rng.below(14)) {
      case 0:
        add({0xbc});  // mov esp, stack
        word(stack());
        break;
      case 1:
        add({0xbd});  // mov ebp, stack
        word(stack());
        break;
      case 2:
        add({0x89, 0xec});  // mov esp, ebp
        break;
      case 3:
        add({0x87, 0xe5});  // xchg esp, ebp
        break;
      case 4:
        add({0xc9});  // leave
        add({0xbc});
        word(stack());
        break;
      case 5:
        add({0x83, 0xec, 0x20});  // sub esp, 32
        break;
      case 6:
        add({0x83, 0xc4, 0x10});  // add esp, 16
        break;
      case 7:
        add({0x50});  // push eax
        break;
      case 8:
        add({0x5b});  // pop ebx
        break;
      case 9:
        add({0x8b, 0x44, 0x24, 0x08});  // mov eax, [esp + 8]
        break;
      case 10:
        add({0xff, 0x44, 0x24, 0x04});  // inc dword [esp + 4]
        break;
      case 11:
        add({0xa1});  // mov eax, [somewhere]
        word(somewhere());
        break;
      case 12:
        add({0xa3});  // mov [somewhere], eax
        word(somewhere());
        break;
      default:
        add({0x01, 0x05});  // add [somewhere], eax
        word(somewhere());
        break;
    }
  return code;
}

class Lines : public TapSink {
 public:
  void on_batch(const Cpu&, std::span<const Access> batch, uint64_t first) override {
    for (const Access& access : batch)
      lines.push_back(fmt::format("{} {:x} {:x} {:x} {} {}", first + access.retired, access.pc().raw,
                                  access.address().raw, access.value, access.size + 0, access.wrote + 0));
  }
  void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}
  std::vector<std::string> lines;
};

struct Recorded {
  std::vector<std::string> told;
  uint64_t state_hash = 0;
};

Recorded run(const std::vector<uint8_t>& code, unsigned instructions, const TapFilter& filter, bool slowly,
             uint64_t piece) {
  std::unique_ptr<Pc> pc = make_tiny(code, 1);
  Lines told;
  Tap tap(told, filter);
  if (slowly) tap.watches = {{.first = 0xf0000000, .last = 0xf0000000}};  // no access there
  pc->attach(&tap);
  pc->cpu(0).gpr(kRsp) = kStacks[0] + 0x2000;
  for (uint64_t left = instructions; left > 0;) {
    const uint64_t now = std::min(left, piece);
    EXPECT_EQ(pc->run(now), PcStop::Budget);
    left -= now;
  }
  tap.flush();
  return {told.lines, pc->state_hash()};
}

// Returns how many accesses were recorded.
size_t compare(const KernelStacks& stacks) {
  size_t recorded = 0, all = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    constexpr unsigned kInstructions = 150;
    const std::vector<uint8_t> code = random_code(rng, kInstructions);
    const TapFilter own{.rings = 1, .own_stack = false, .calls = true, .stacks = stacks};
    const Recorded expected = run(code, kInstructions, own, true, 1'000);
    for (const uint64_t piece : {1'000, 7, 1}) {
      const Recorded actual = run(code, kInstructions, own, false, piece);
      EXPECT_EQ(actual.told, expected.told) << "seed " << seed << ", " << piece << " at once";
      EXPECT_EQ(actual.state_hash, expected.state_hash) << "seed " << seed;
    }
    // Without any other reason for hooks.
    const TapFilter alone{.rings = 1, .own_stack = false, .events = false, .stacks = stacks};
    EXPECT_EQ(run(code, kInstructions, alone, false, 1'000).told, expected.told) << "seed " << seed;
    recorded += expected.told.size();
    all += run(code, kInstructions, {.rings = 1}, false, 1'000).told.size();
  }
  // Both kinds must be common.
  EXPECT_GT(recorded, all / 5);
  EXPECT_LT(recorded, all * 4 / 5);
  return recorded;
}

TEST(OwnStack, IsTheSameWhereverItIsFast) {
  compare({});
}

TEST(OwnStack, HasTheSizeOfTheGuest) {
  const size_t pages = compare({.size = 4096}), small = compare({.size = 8192}),
               large = compare({.size = 32768});
  EXPECT_GT(pages, small);  // what is not on the current stack is recorded
  EXPECT_GT(small, large);
}

TEST(OwnStack, IsARegionOfPages) {
  Lines told;
  EXPECT_THROW(Tap(told, {.stacks = {.size = 12288}}), InternalError);
  EXPECT_THROW(Tap(told, {.stacks = {.size = 2048}}), InternalError);
}

TEST(OwnStack, IsWatchedAllTheSame) {
  // mov esp, 0x42000; push eax; push eax; push eax
  const std::vector<uint8_t> code = {0xbc, 0, 0x20, 4, 0, 0x50, 0x50, 0x50};
  std::unique_ptr<Pc> pc = make_tiny(code, 1);
  Lines told;
  Tap tap(told, {.rings = 1, .own_stack = false});
  pc->attach(&tap);
  ASSERT_EQ(pc->run(2), PcStop::Budget);  // now the page is in the TLB
  tap.watches = {{.first = 0x41ff8, .last = 0x41ffb}};
  ASSERT_EQ(pc->run(2), PcStop::Access);
  EXPECT_EQ(pc->executed(), 2u);
  EXPECT_TRUE(told.lines.empty());
}

}  // namespace
}  // namespace slalom::vm
