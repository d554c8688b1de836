// Links between blocks, also across pages: a CPU that caches them behaves like one that looks up everything
// anew.
#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kLinkedHalf = 0xffff800000000000;
constexpr uint64_t kMappedBefore = 0x63;  // present, writable, accessed, dirty
// Four consecutive tables for each of two address spaces, the root first.
constexpr Physical kLinkedTables = 0x1000, kSecondTables = 0x5000;
constexpr Physical kAdding = 0x20000, kMultiplying = 0x21000, kSubtracting = 0x22000, kJumpingOn = 0x23000,
                   kBothStacks = 0x24000;
// Pages of the upper half.
constexpr uint32_t kCallsAt = 0, kFunctionAt = 0x1000, kTableAt = 0x2000, kStackAt = 0x3000, kTailAt = 0x4000;

// Forever: calls, some of them through a jump, and changes of the mapping of the function's page.
std::vector<uint8_t> calling(Rng& rng) {
  std::vector<uint8_t> code;
  const auto add = [&](std::initializer_list<uint8_t> bytes) { code.insert(code.end(), bytes); };
  const auto word = [&](uint64_t value) {
    for (unsigned i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  add({0x48, 0xbb, 0, 0, 0, 0, 0, 0x80, 0xff, 0xff});  // mov rbx, kLinkedHalf
  add({0x48, 0xc7, 0xc1});                             // mov rcx, ...
  word(kAdding | kMappedBefore);
  add({0x48, 0xc7, 0xc2});  // mov rdx, ...
  word(kMultiplying | kMappedBefore);
  const size_t begin = code.size();
  for (unsigned i = 0; i < 60; ++i) {
    const uint64_t what = rng.below(10);
    if (what == 0) {
      add({0x48, 0x89, 0x8b});  // mov [rbx + ...], rcx
      word(kTableAt + 8);
    } else if (what == 1) {
      add({0x48, 0x89, 0x93});  // mov [rbx + ...], rdx
      word(kTableAt + 8);
    } else {
      add({0xe8});  // call
      word((what < 6 ? kFunctionAt : kTailAt) - (code.size() + 4));
    }
  }
  add({0xe9});  // jmp
  word(begin - (code.size() + 4));
  return code;
}

void put_entry(Pc& pc, Physical at, uint64_t word) {
  uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(word >> 8 * i);
  ASSERT_TRUE(pc.ram().write(at, bytes));
}

void make_space(Pc& pc, Physical tables, Physical function, Physical stack) {
  put_entry(pc, tables + 8 * 256, (tables + 0x1000) | kMappedBefore);
  put_entry(pc, tables + 0x1000, (tables + 0x2000) | kMappedBefore);
  put_entry(pc, tables + 0x2000, (tables + 0x3000) | kMappedBefore);
  const Physical table = tables + 0x3000;
  const auto map = [&](uint32_t page, Physical to) { put_entry(pc, table + page / 512, to | kMappedBefore); };
  map(kCallsAt, kTinyCode);
  map(kFunctionAt, function);
  map(kTableAt, table);
  map(kStackAt, stack);
  map(kTailAt, kJumpingOn);
}

// Two CPUs, in one address space or in separate ones.
std::unique_ptr<Pc> make_calling(uint64_t seed, bool shares) {
  Rng rng(seed);
  std::unique_ptr<Pc> pc = make_tiny(calling(rng), 2);
  make_space(*pc, kLinkedTables, kAdding, kBothStacks);
  make_space(*pc, kSecondTables, kSubtracting, kBothStacks);
  put_entry(*pc, kAdding, 0xc3'01'c0'83'48);       // add rax, 1;  ret
  put_entry(*pc, kMultiplying, 0xc3'03'c0'6b'48);  // imul rax, rax, 3;  ret
  put_entry(*pc, kSubtracting, 0xc3'05'e8'83'48);  // sub rax, 5;  ret
  put_entry(*pc, kJumpingOn, 0xff'ff'cf'fb'e9);    // jmp kFunctionAt
  pc->enter({.mode = EntryState::Mode::Long64,
             .rip = kLinkedHalf,
             .rsp = kLinkedHalf + kStackAt + 0x800,
             .cr3 = kLinkedTables,
             .code_selector = 8,
             .data_selector = 16});
  Cpu& second = pc->cpu(1);
  second.regs = pc->cpu(0).regs;
  second.regs.gpr[kRsp] += 0x400;
  if (!shares) second.regs.cr3 = kSecondTables;
  second.set_cpl(0);
  second.registers_changed();
  return pc;
}

class Links : public testing::TestWithParam<bool> {};

TEST_P(Links, AreWhatIsFoundAnew) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    std::unique_ptr<Pc> linked = make_calling(seed, GetParam()), naive = make_calling(seed, GetParam());
    naive->set_caching(false);
    const Pc::Checkpoint begin = linked->take(), naive_begin = naive->take();
    Rng rng(seed);
    for (unsigned turn = 0; turn < 300; ++turn) {
      const auto cpu = static_cast<unsigned>(rng.below(2));
      const uint64_t instructions = 1 + rng.below(200);
      ASSERT_EQ(linked->run_cpu(cpu, {.instructions = instructions, .offered = {}}), PcStop::Budget);
      ASSERT_EQ(naive->run_cpu(cpu, {.instructions = instructions, .offered = {}}), PcStop::Budget);
      for (unsigned i = 0; i < 2; ++i) {
        ASSERT_EQ(linked->cpu(i).gpr(kRip), naive->cpu(i).gpr(kRip)) << turn;
        ASSERT_EQ(linked->cpu(i).gpr(kRax), naive->cpu(i).gpr(kRax)) << turn;
      }
      if (rng.below(50) != 0) continue;
      linked->restore(begin);
      naive->restore(naive_begin);
    }
    EXPECT_EQ(linked->state_hash(), naive->state_hash());
  }
}

INSTANTIATE_TEST_SUITE_P(OfTwoCpus, Links, testing::Bool(),
                         [](const auto& info) { return info.param ? "InOneSpace" : "InTwoSpaces"; });

}  // namespace
}  // namespace slalom::vm
