// Checkpoints of the whole machine: after a restore, the future is always the same.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/cpu/blocks.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

// 1: inc dword ptr [0x100000];  jmp 1b
constexpr uint8_t kCounter[] = {0xff, 0x05, 0x00, 0x00, 0x10, 0x00, 0xeb, 0xf8};

// How a machine got to its state: runs of some length, each after a change of a register.
struct Leg {
  uint64_t instructions;
  uint64_t change;
};
using Way = std::vector<Leg>;

void go(Pc& pc, const Leg& leg) {
  pc.cpu(0).gpr(kRsi) ^= leg.change;
  ASSERT_EQ(pc.run(leg.instructions), PcStop::Budget);
}

uint64_t hash_after(const Way& way) {
  std::unique_ptr<Pc> pc = make_tiny();
  for (const Leg& leg : way) go(*pc, leg);
  return pc->state_hash();
}

TEST(PcCheckpoints, AnyPlaceOfTheTreeIsAsIfReachedFromTheStart) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Rng rng(seed);
    std::unique_ptr<Pc> pc = make_tiny();
    Way way;
    std::map<Pc::Checkpoint, Way> tree;
    for (int step = 0; step < 50; ++step) {
      const uint64_t choice = tree.empty() ? rng.below(5) : rng.below(10);
      if (choice < 4) {
        way.push_back({.instructions = 1 + rng.below(200), .change = rng.next() >> 40});
        go(*pc, way.back());
      } else if (choice == 4) {
        tree[pc->take()] = way;
      } else {
        const auto one = std::next(tree.begin(), static_cast<ptrdiff_t>(rng.below(tree.size())));
        if (choice == 9 && tree.size() > 1) {
          pc->drop(one->first);
          tree.erase(one);
          continue;
        }
        pc->restore(one->first);
        way = one->second;
      }
      if (rng.below(4) == 0) {
        ASSERT_EQ(pc->state_hash(), hash_after(way)) << "seed " << seed << ", step " << step;
      }
    }
    for (const auto& [id, place] : tree) {
      pc->restore(id);
      ASSERT_EQ(pc->state_hash(), hash_after(place)) << "seed " << seed << ", checkpoint " << id;
    }
  }
}

TEST(PcCheckpoints, AForkedProcessGoesOnFromThere) {
  std::unique_ptr<Pc> pc = make_tiny();
  pc->run(1'000);
  pc->ram().make_base();
  const Pc::Checkpoint start = pc->take();
  pc->run(3'000);
  const uint64_t expected = pc->state_hash();
  pc->run(700);  // the children start elsewhere
  for (int child = 0; child < 3; ++child) {
    const pid_t id = fork();
    ASSERT_GE(id, 0);
    if (id == 0) {
      pc->restore(start);
      pc->run(3'000);
      _exit(pc->state_hash() == expected ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(id, &status, 0), id);
    EXPECT_EQ(status, 0);
  }
  pc->restore(start);
  pc->run(3'000);
  EXPECT_EQ(pc->state_hash(), expected);
}

TEST(PcCheckpoints, GoesOnAfterSomethingUnknown) {
  // mov ecx, 1000;  1: dec ecx;  jnz 1b;  jmp 0xd0000000, where there is no memory
  const uint8_t code[] = {0xb9, 0xe8, 0x03, 0, 0, 0x49, 0x75, 0xfd, 0xe9, 0xf3, 0xff, 0xfe, 0xcf};
  std::unique_ptr<Pc> pc = make_tiny(code);
  pc->run(10);
  const Pc::Checkpoint start = pc->take();
  pc->run(1'000);
  const uint64_t expected = pc->state_hash();
  EXPECT_EQ(pc->run(100'000), PcStop::Unknown);
  EXPECT_NE(pc->trouble(), "");
  pc->restore(start);
  EXPECT_EQ(pc->trouble(), "");
  EXPECT_EQ(pc->run(1'000), PcStop::Budget);
  EXPECT_EQ(pc->state_hash(), expected);
}

TEST(PcCheckpoints, DecodedCodeSurvivesUnlessItsPageChanged) {
  std::unique_ptr<Pc> pc = make_tiny(kCounter);
  const Pc::Checkpoint start = pc->take();
  pc->run(1'000);
  const uint64_t page = kTinyCode >> kPageShift;
  const auto decoded = [&] { return pc->cpu(0).system.blocks->find(page, 0, pc->cpu(0).mode); };
  const Block* before = decoded();
  ASSERT_NE(before, nullptr);
  pc->restore(start);
  EXPECT_EQ(decoded(), before);
  const uint8_t other[] = {0xff, 0x0d};  // dec
  pc->ram().write(kTinyCode, other);
  pc->restore(start);
  EXPECT_EQ(decoded(), nullptr);
  pc->run(1'000);
  uint8_t count[4];
  ASSERT_TRUE(pc->ram().read(0x100000, count));
  EXPECT_EQ(count[0] | count[1] << 8, 500);
}

// Between the switch to protected mode and the far jump after it, the code segment is still that of real
// mode. Its selector does not contain the privilege.
TEST(PcCheckpoints, ThePrivilegeIsNotTakenFromASelectorOfRealMode) {
  std::unique_ptr<Pc> pc = make_tiny();
  pc->cpu(0).regs.segments[kCs].selector = 0x1003;
  ASSERT_EQ(pc->cpu(0).cpl, 0);
  const Pc::Checkpoint start = pc->take();
  pc->cpu(0).set_cpl(3);
  pc->restore(start);
  EXPECT_EQ(pc->cpu(0).cpl, 0);
}

void expect_equal_in_slices(std::span<const uint8_t> code, uint64_t instructions,
                            std::initializer_list<uint64_t> slices) {
  std::unique_ptr<Pc> whole = make_tiny(code);
  whole->run(instructions);
  const uint64_t expected = whole->state_hash();
  const std::string printed = whole->devices().take_console_output();
  for (const uint64_t slice : slices) {
    std::unique_ptr<Pc> pc = make_tiny(code);
    while (pc->executed() < instructions) pc->run(std::min(slice, instructions - pc->executed()));
    EXPECT_EQ(pc->state_hash(), expected) << slice;
    EXPECT_EQ(pc->devices().take_console_output(), printed) << slice;
  }
}

TEST(PcCheckpoints, SlicesOfAnySizeGiveTheSameMachine) {
  expect_equal_in_slices(kWalker, 4'000, {1, 2, 3, 7, 997});
  expect_equal_in_slices(kCounter, 60'000, {1, 3, 19'999, 20'000, 20'001});
}

}  // namespace
}  // namespace slalom::vm
