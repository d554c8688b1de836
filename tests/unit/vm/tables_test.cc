// A write to a page table takes effect at once, for data and for code, even without an invalidation by the
// guest.
#include <gtest/gtest.h>

#include <vector>

#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kUpperHalf = 0xffff800000000000;
constexpr uint64_t kProgram = 0x400000;
constexpr uint64_t kRights = 7;  // present, writable, user
constexpr Physical kRoot = 0x1000, kDirectory = 0x6000, kOldTable = 0x7000, kNewTable = 0x8000;
constexpr Physical kStackPage = 0x20000, kOldCode = 0x22000, kOldData = 0x23000, kNewCode = 0x24000,
                   kNewData = 0x25000;

// A write of the kernel's half to the program's tables, which are mapped from its third page on.
struct Change {
  const char* name;
  uint32_t at, value;
  uint64_t data;  // expected data of the program's second page afterwards
};

std::vector<uint8_t> changing(const Change& change) {
  std::vector<uint8_t> code;
  const auto add = [&](std::initializer_list<uint8_t> bytes) { code.insert(code.end(), bytes); };
  const auto word = [&](uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  add({0x48, 0xbb, 0, 0, 0, 0, 0, 0x80, 0xff, 0xff});  // mov rbx, kUpperHalf
  add({0x48, 0xc7, 0xc1});                             // mov rcx, value
  word(change.value);
  add({0x48, 0xc7, 0xc7, 0, 0, 0x40, 0});  // mov rdi, kProgram
  add({0xff, 0xd7});                       // call rdi
  add({0x48, 0x89, 0xc6});                 // mov rsi, rax
  add({0x4c, 0x8b, 0x87, 0, 0x10, 0, 0});  // mov r8, [rdi + 0x1000]
  add({0x48, 0x89, 0x8b});                 // mov [rbx + at], rcx
  word(change.at);
  add({0xff, 0xd7});                       // call rdi
  add({0x4c, 0x8b, 0x8f, 0, 0x10, 0, 0});  // mov r9, [rdi + 0x1000]
  add({0xeb, 0xfe});                       // jmp .
  return code;
}
constexpr uint64_t kInstructions = 13;  // before the jump

class Tables : public testing::TestWithParam<Change> {};

TEST_P(Tables, ChangeAtOnce) {
  std::unique_ptr<Pc> pc = make_tiny(changing(GetParam()), 1);
  const auto put = [&](Physical at, uint64_t word) {
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(word >> 8 * i);
    ASSERT_TRUE(pc->ram().write(at, bytes));
  };
  const auto link = [&](Physical table, unsigned entry, Physical to) {
    put(table + 8 * entry, to | kRights);
  };
  link(kRoot, 256, 0x2000);
  link(0x2000, 0, 0x3000);
  link(0x3000, 0, 0x4000);
  link(0x4000, 0, kTinyCode);
  link(0x4000, 1, kStackPage);
  link(0x4000, 2, kDirectory);
  link(0x4000, 3, kOldTable);
  link(kRoot, 0, 0x5000);
  link(0x5000, 0, kDirectory);
  link(kDirectory, 2, kOldTable);
  link(kOldTable, 0, kOldCode);
  link(kOldTable, 1, kOldData);
  link(kNewTable, 0, kNewCode);
  link(kNewTable, 1, kNewData);
  put(kOldCode, 0xc3'0000'0001'b8);  // mov eax, 1; ret
  put(kNewCode, 0xc3'0000'0002'b8);
  put(kOldData, 1);
  put(kNewData, 2);
  pc->enter({.mode = EntryState::Mode::Long64,
             .rip = kUpperHalf,
             .rsp = kUpperHalf + 0x1800,
             .cr3 = kRoot,
             .code_selector = 8,
             .data_selector = 16});
  const Pc::Checkpoint begin = pc->take();
  for (unsigned round = 0; round < 3; ++round) {  // in later rounds the CPU has everything cached
    SCOPED_TRACE(round);
    ASSERT_EQ(pc->run(kInstructions), PcStop::Budget);
    EXPECT_EQ(pc->cpu(0).gpr(kRsi), 1u);
    EXPECT_EQ(pc->cpu(0).gpr(8), 1u);
    EXPECT_EQ(pc->cpu(0).gpr(kRax), 2u);
    EXPECT_EQ(pc->cpu(0).gpr(9), GetParam().data);
    pc->restore(begin);
  }
}

INSTANTIATE_TEST_SUITE_P(OfAProgram, Tables,
                         testing::Values(Change{"Directory", 0x2010, kNewTable | kRights, 2},
                                         Change{"Page", 0x3000, kNewCode | kRights, 1}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace slalom::vm
