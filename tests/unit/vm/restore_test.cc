// A CPU's translations of the kernel's half of the address space survive a restore, but only those that are
// still valid.
#include <gtest/gtest.h>

#include "unit/vm/tiny_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kKernelHalf = 0xffff800000000000;
constexpr Physical kRootTable = 0x1000, kPageTable = 0x4000, kFirstData = 0x20000, kSecondData = 0x21000;
constexpr uint64_t kTableRights = 3;      // present, writable, not accessed
constexpr uint64_t kWalkedRights = 0x23;  // also accessed, so that a walk changes nothing

// At kKernelHalf: page 0 is this code, page 1 the first data, page 2 the page table itself. Reads the data,
// maps the second data in its place, and reads again.
//
//   mov rbx, kKernelHalf;  mov rcx, kSecondData | kTableRights
//   mov rax, [rbx + 0x1000]
//   mov [rbx + 0x2008], rcx
//   mov rdx, [rbx + 0x1000]
//   jmp .
constexpr uint8_t kRemaps[] = {0x48, 0xbb, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0xff, 0xff,
                               0x48, 0xc7, 0xc1, 0x03, 0x10, 0x02, 0x00, 0x48, 0x8b, 0x83,
                               0x00, 0x10, 0x00, 0x00, 0x48, 0x89, 0x8b, 0x08, 0x20, 0x00,
                               0x00, 0x48, 0x8b, 0x93, 0x00, 0x10, 0x00, 0x00, 0xeb, 0xfe};

std::unique_ptr<Pc> make_remapping() {
  std::unique_ptr<Pc> pc = make_tiny(kRemaps, 1);
  const auto put = [&](Physical at, uint64_t word) {
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(word >> 8 * i);
    EXPECT_TRUE(pc->ram().write(at, bytes));
  };
  put(kRootTable + 8 * 256, 0x2000 | kWalkedRights);
  put(0x2000, 0x3000 | kWalkedRights);
  put(0x3000, kPageTable | kWalkedRights);
  put(kPageTable, kTinyCode | kTableRights);
  put(kPageTable + 8, kFirstData | kTableRights);
  put(kPageTable + 16, kPageTable | kTableRights);
  put(kFirstData, 1);
  put(kSecondData, 2);
  pc->enter({.mode = EntryState::Mode::Long64,
             .rip = kKernelHalf,
             .rsp = kKernelHalf + 0x1800,
             .cr3 = kRootTable,
             .code_selector = 8,
             .data_selector = 16});
  return pc;
}

TEST(Restore, TranslationsOfAChangedTableGo) {
  std::unique_ptr<Pc> pc = make_remapping();
  const Pc::Checkpoint begin = pc->take();
  uint64_t hash = 0;
  for (unsigned round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    // A debugger sees the same memory as the CPU, whatever the CPU has cached.
    const auto seen = [&] { return read_word(pc->cpu(0), kKernelHalf + 0x1000); };
    EXPECT_EQ(seen(), 1u);
    ASSERT_EQ(pc->run(3), PcStop::Budget);
    EXPECT_EQ(seen(), 1u);
    ASSERT_EQ(pc->run(1), PcStop::Budget);
    EXPECT_EQ(seen(), 2u);
    ASSERT_EQ(pc->run(2), PcStop::Budget);
    EXPECT_EQ(seen(), 2u);
    EXPECT_EQ(pc->cpu(0).gpr(kRax), 1u);
    EXPECT_EQ(pc->cpu(0).gpr(kRdx), 2u);
    // Includes the bits that walks set in the tables.
    const uint64_t now = pc->state_hash();
    if (round == 0) hash = now;
    EXPECT_EQ(now, hash);
    pc->restore(begin);
  }
}

}  // namespace
}  // namespace slalom::vm
