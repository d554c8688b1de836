// A CPU that is kept until a conflict passes most choice points, and `pos` is asked at the others only. It
// must decide as if it were asked at each one. Small programs, whose CPUs share memory and a lock and
// interrupt each other.
#include "support/until_conflict.h"

#include <gtest/gtest.h>

#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"

namespace slalom::vm {
namespace {

constexpr Physical kSecondFlow = 0x20000, kIrqHandler = 0x30000, kDescriptors = 0x1000, kGates = 0x2000;
constexpr uint8_t kIrq = 0xf6;
constexpr uint64_t kSchedulesEach = 300;

std::unique_ptr<KernelMachine> two_flows(const TinyCode& first, const TinyCode& second) {
  std::unique_ptr<Pc> pc = make_tiny(first.bytes, 2);
  pc->ram().write(kSecondFlow, second.bytes);
  // push eax; [0x100000] += 1; pop eax; iret
  TinyCode handler;
  pc->ram().write(kIrqHandler, handler.add({0x50}).increment().end_of_interrupt().add({0x58, 0xcf}).bytes);
  TinyCode descriptors, gate;
  descriptors.word(0).word(0).word(0x0000ffff).word(0x00cf9a00).word(0x0000ffff).word(0x00cf9200);
  gate.word(8u << 16 | (kIrqHandler & 0xffff)).word((kIrqHandler & 0xffff0000) | 0x8e00);
  pc->ram().write(kDescriptors, descriptors.bytes);
  pc->ram().write(kGates + 8 * kIrq, gate.bytes);
  Pc::Rest rest = pc->rest();
  rest.cpus[0].gdtr = {kDescriptors, 23};
  rest.cpus[0].idtr = {kGates, 0x7ff};
  rest.cpus[1] = rest.cpus[0];
  rest.cpus[1].gpr[kRip] = kSecondFlow;
  rest.cpus[1].gpr[kRsp] = 0x8000;
  rest.privileges[1] = rest.privileges[0];
  CHECK(pc->set_rest(rest).ok(), "the second CPU");
  return std::make_unique<KernelMachine>(Booted{.pc = std::move(pc), .kernel = "", .identity = ""},
                                         KernelMachineOptions{.flows = 2}, std::make_shared<NumberNames>());
}

// Stores to private memory: choice points without conflicts.
TinyCode& own_work(TinyCode& code, uint32_t at, int stores) {
  for (int i = 0; i < stores; ++i) code.store(at + 8 * static_cast<uint32_t>(i), 1);
  return code;
}

// mov eax, 1; 1: xchg [0x100100], eax; test eax, eax; jz 2f; pause; jmp 1b; 2:
TinyCode& spin_lock(TinyCode& code) {
  code.add({0xb8}).word(1);
  return code.add({0x87, 0x05}).word(0x100100).add({0x85, 0xc0, 0x74, 4, 0xf3, 0x90, 0xeb, 0xf2});
}

void expect_the_same_executions(const TinyCode& first, const TinyCode& second) {
  const auto make = [&]() -> Result<std::unique_ptr<KernelMachine>> { return two_flows(first, second); };
  const Inputs everywhere{.policy = {.where = ChoicePolicy::Where::Everywhere}, .max_steps = 100'000};
  const PosSearch kept = search_with_pos(make, everywhere, kSchedulesEach, Asked::AtConflicts);
  const PosSearch asked = search_with_pos(make, everywhere, kSchedulesEach, Asked::Everywhere);
  ASSERT_EQ(kept.schedules.size(), asked.schedules.size());
  for (size_t i = 0; i < kept.schedules.size(); ++i)
    ASSERT_EQ(kept.schedules[i], asked.schedules[i]) << "execution " << i;
  EXPECT_LT(kept.choice_points, asked.choice_points * 3 / 4);
}

TEST(UntilConflict, ChangesNothingWhereFlowsMeetInMemory) {
  TinyCode first, second;
  own_work(own_work(first, 0x101000, 12).increment(), 0x101100, 12).increment().store(0x100200, 1).done(0);
  own_work(own_work(second, 0x102000, 7).increment(), 0x102100, 9).store(0x100200, 2).increment().done(1);
  expect_the_same_executions(first, second);
}

TEST(UntilConflict, ChangesNothingWhereFlowsWaitForALock) {
  TinyCode first, second;
  own_work(spin_lock(own_work(first, 0x101000, 8)).increment(), 0x101100, 8).store(0x100100, 0).done(0);
  own_work(spin_lock(own_work(second, 0x102000, 8)).increment(), 0x102100, 8).store(0x100100, 0).done(1);
  expect_the_same_executions(first, second);
}

TEST(UntilConflict, ChangesNothingWhereInterruptsComeIn) {
  TinyCode first, second;
  own_work(first.interrupt_self(kIrq), 0x101000, 6).add({0xfb});  // sti
  own_work(own_work(first, 0x101100, 9).increment(), 0x101200, 9).done(0);
  own_work(own_work(second, 0x102000, 9).increment(), 0x102100, 9).done(1);
  expect_the_same_executions(first, second);
}

}  // namespace
}  // namespace slalom::vm
