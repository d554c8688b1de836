// Compares the debugger with a machine that runs one instruction at a time: the same stops, at the same
// places, with the same states, forward and backward.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "unit/vm/tiny_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/gdb/debugger.h"
#include "vm/replay/natural_run.h"

namespace slalom::vm {
namespace {

using StopKind = DebugStop::Kind;

constexpr uint64_t kAdd = kTinyCode + 27;      // add [ebx + 0x100000], eax
constexpr uint64_t kPatched = kTinyCode + 38;  // mov edx, ...
constexpr uint64_t kOut = kTinyCode + 52;      // out 0xe9, al
constexpr uint64_t kFarFuture = 60'000;

// Both CPUs walk in turns; the second one starts at another place.
std::unique_ptr<Pc> two_walkers() {
  std::unique_ptr<Pc> pc = make_tiny(kWalker, 2);
  Registers& r = pc->cpu(1).regs;
  const uint64_t retired = r.retired;
  r = pc->cpu(0).regs;
  r.retired = retired;
  r.gpr[kRip] = kTinyCode + 5;
  r.gpr[kRax] = 0x54321;
  pc->cpu(1).set_rflags(r.rflags);
  pc->cpu(1).registers_changed();
  return pc;
}

DebuggerOptions small() {
  return {.checkpoint_every = 3'000, .most_checkpoints = 6, .slice = 700};
}

struct Debugged {
  explicit Debugged(const DebuggerOptions& options = small())
      : pc(two_walkers()), run(*pc), debugger(run, options) {}
  std::unique_ptr<Pc> pc;
  NaturalRun run;
  Debugger debugger;
};

// The history of the same machine without a debugger.
struct Plain {
  struct At {
    unsigned cpu;
    uint64_t rip;   // of the next instruction
    uint32_t cell;  // the watched memory before it
    uint64_t retired[2];
  };
  explicit Plain(Physical cell = 0) {
    const auto pc = two_walkers();
    for (uint64_t i = 0; i <= kFarFuture; ++i) {
      At at{.cpu = 0, .rip = 0, .cell = 0, .retired = {pc->cpu(0).regs.retired, pc->cpu(1).regs.retired}};
      uint8_t bytes[4];
      pc->ram().read(cell, bytes);
      std::memcpy(&at.cell, bytes, 4);
      const uint64_t rips[2] = {pc->cpu(0).gpr(kRip), pc->cpu(1).gpr(kRip)};
      pc->run(1);
      at.cpu = pc->current();
      at.rip = rips[at.cpu];
      all.push_back(at);
    }
  }
  std::vector<At> all;  // by number of executed instructions
};

uint64_t plain_hash(uint64_t executed) {
  const auto pc = two_walkers();
  pc->run(executed);
  return pc->state_hash();
}

TEST(GdbDebugger, BreakpointsStopWhereAPlainMachineComesBy) {
  const Plain plain;
  Debugged d;
  d.debugger.breakpoints = {kOut, kPatched};
  for (uint64_t i = 0; i < kFarFuture; ++i)
    if (plain.all[i].rip == kOut || plain.all[i].rip == kPatched) {
      const DebugStop stop = d.debugger.go();
      ASSERT_EQ(stop.kind, StopKind::Break);
      ASSERT_EQ(d.debugger.position().executed, i);
      ASSERT_EQ(stop.cpu, plain.all[i].cpu);
      ASSERT_EQ(d.pc->cpu(stop.cpu).gpr(kRip), plain.all[i].rip);
    }
}

TEST(GdbDebugger, WithoutBreakpointsItStopsNowhere) {
  uint64_t calls = 0;
  DebuggerOptions options = small();
  options.between = [&] { return ++calls == 40; };
  Debugged d(options);
  EXPECT_EQ(d.debugger.go().kind, StopKind::Interrupted);
  EXPECT_EQ(d.pc->state_hash(), plain_hash(d.debugger.position().executed));
}

TEST(GdbDebugger, GoingBackMeetsTheSameStopsAndStates) {
  Debugged d;
  d.debugger.breakpoints = {kOut};
  std::vector<std::pair<HistoryPoint, uint64_t>> there;
  while (true) {
    d.debugger.go();
    if (d.debugger.position().executed > kFarFuture) break;
    there.emplace_back(d.debugger.position(), d.pc->state_hash());
  }
  ASSERT_EQ(there.size(), 8u);
  for (size_t i = there.size(); i > 0; --i) {
    ASSERT_EQ(d.debugger.go_back().kind, StopKind::Break);
    EXPECT_EQ(d.debugger.position(), there[i - 1].first);
    EXPECT_EQ(d.pc->state_hash(), there[i - 1].second);
  }
  EXPECT_EQ(d.debugger.go_back().kind, StopKind::Begin);
  EXPECT_EQ(d.debugger.position().executed, 0u);
  EXPECT_EQ(d.pc->state_hash(), plain_hash(0));
  EXPECT_EQ(d.debugger.go_back().kind, StopKind::Begin);
  for (const auto& [position, hash] : there) {
    ASSERT_EQ(d.debugger.go().kind, StopKind::Break);
    EXPECT_EQ(d.debugger.position(), position);
    EXPECT_EQ(d.pc->state_hash(), hash);
  }
}

// Each round writes the watched memory once: the instruction before kPatched does.
TEST(GdbDebugger, WatchpointsStopBehindEveryWrite) {
  const uint64_t cell = kPatched + 1;
  const Plain plain(cell);
  Debugged d;
  d.debugger.watchpoints = {{.kind = Watchpoint::Kind::Write, .first = cell, .last = cell + 3}};
  std::vector<uint64_t> writes;
  for (uint64_t i = 1; i < 30'000; ++i)
    if (plain.all[i - 1].rip == kTinyCode + 33) writes.push_back(i);
  ASSERT_GT(writes.size(), 1'000u);
  for (const uint64_t position : writes) {
    const DebugStop stop = d.debugger.go();
    ASSERT_EQ(stop.kind, StopKind::Watch);
    ASSERT_EQ(stop.address, cell);
    ASSERT_EQ(d.debugger.position().executed, position);
    ASSERT_EQ(stop.cpu, plain.all[position - 1].cpu);
    std::array<uint8_t, 4> bytes;
    ASSERT_TRUE(read_all(d.pc->cpu(0), cell, bytes));
    ASSERT_EQ(std::memcmp(bytes.data(), &plain.all[position].cell, 4), 0);
  }
  EXPECT_EQ(d.pc->state_hash(), plain_hash(writes.back()));
  // Go back to before each write. The previous value must be there again.
  for (size_t i = writes.size(); i > writes.size() - 50; --i) {
    const DebugStop stop = d.debugger.go_back();
    ASSERT_EQ(stop.kind, StopKind::Watch);
    ASSERT_EQ(d.debugger.position().executed, writes[i - 1] - 1);
    std::array<uint8_t, 4> bytes;
    ASSERT_TRUE(read_all(d.pc->cpu(0), cell, bytes));
    ASSERT_EQ(std::memcmp(bytes.data(), &plain.all[writes[i - 1] - 1].cell, 4), 0);
  }
}

TEST(GdbDebugger, ReadsAreWatchedIfAskedFor) {
  // 1: inc dword ptr [0x100000];  mov eax, [0x100004];  mov [0x100008], eax;  jmp 1b
  const uint8_t code[] = {0xff, 0x05, 0x00, 0x00, 0x10, 0x00, 0xa1, 0x04, 0x00,
                          0x10, 0x00, 0xa3, 0x08, 0x00, 0x10, 0x00, 0xeb, 0xee};
  const auto positions = [&](Watchpoint::Kind kind, uint64_t first) {
    std::unique_ptr<Pc> pc = make_tiny(code, 1);
    NaturalRun run(*pc);
    uint64_t calls = 0;
    Debugger debugger(run, {.slice = 10, .between = [&] { return ++calls > 5; }});
    debugger.watchpoints = {{.kind = kind, .first = first, .last = first + 3}};
    std::vector<uint64_t> found;
    while (found.size() < 3 && debugger.go().kind == StopKind::Watch)
      found.push_back(debugger.position().executed);
    return found;
  };
  using Positions = std::vector<uint64_t>;
  EXPECT_EQ(positions(Watchpoint::Kind::Write, 0x100000), (Positions{1, 5, 9}));
  EXPECT_EQ(positions(Watchpoint::Kind::Read, 0x100000), (Positions{1, 5, 9}));
  EXPECT_EQ(positions(Watchpoint::Kind::Read, 0x100004), (Positions{2, 6, 10}));
  EXPECT_EQ(positions(Watchpoint::Kind::Access, 0x100004), (Positions{2, 6, 10}));
  EXPECT_EQ(positions(Watchpoint::Kind::Write, 0x100004), Positions{});
  EXPECT_EQ(positions(Watchpoint::Kind::Access, 0x100008), (Positions{3, 7, 11}));
  EXPECT_EQ(positions(Watchpoint::Kind::Read, 0x100008), Positions{});
}

TEST(GdbDebugger, StepsOfOneCpuLetTheOtherHaveItsTurns) {
  const Plain plain;
  Debugged d;
  Rng rng(3);
  uint64_t at = 0;
  for (int i = 0; i < 60; ++i) {
    const auto cpu = static_cast<unsigned>(rng.below(2));
    const uint64_t before = plain.all[at].retired[cpu];
    while (at < kFarFuture && plain.all[at].retired[cpu] == before) ++at;
    if (at == kFarFuture) break;
    ASSERT_EQ(d.debugger.step(cpu).kind, StopKind::Step);
    ASSERT_EQ(d.debugger.position().executed, at);
  }
  EXPECT_GT(d.debugger.position().executed, 20'000u);
  EXPECT_EQ(d.pc->state_hash(), plain_hash(d.debugger.position().executed));
}

TEST(GdbDebugger, StepsBackUndoTheLastInstructionOfThatCpu) {
  const Plain plain;
  Debugged d;
  d.debugger.breakpoints = {kOut};
  while (d.debugger.position().executed < 45'000) d.debugger.go();
  Rng rng(4);
  for (int i = 0; i < 40; ++i) {
    const auto cpu = static_cast<unsigned>(rng.below(8) == 0);
    const uint64_t before = plain.all[d.debugger.position().executed].retired[cpu];
    uint64_t expected = d.debugger.position().executed;
    while (expected > 0 && plain.all[expected].retired[cpu] == before) --expected;
    const DebugStop stop = d.debugger.step_back(cpu);
    ASSERT_EQ(stop.kind, before == 0 ? StopKind::Begin : StopKind::Step) << i;
    ASSERT_EQ(d.debugger.position().executed, expected) << i;
    ASSERT_EQ(d.pc->state_hash(), plain_hash(expected)) << i;
  }
}

TEST(GdbDebugger, AChangeByHandBeginsANewHistory) {
  Debugged d;
  d.debugger.breakpoints = {kOut};
  for (int i = 0; i < 5; ++i) d.debugger.go();
  const HistoryPoint here = d.debugger.position();
  d.pc->cpu(0).gpr(kRsi) += 1;
  d.debugger.changed();
  const uint64_t changed = d.pc->state_hash();
  d.debugger.go();
  const HistoryPoint next = d.debugger.position();
  d.debugger.go();
  EXPECT_EQ(d.debugger.go_back().kind, StopKind::Break);
  EXPECT_EQ(d.debugger.position(), next);
  EXPECT_EQ(d.debugger.go_back().kind, StopKind::Begin);
  EXPECT_EQ(d.debugger.position(), here);
  EXPECT_EQ(d.pc->state_hash(), changed);
  EXPECT_EQ(d.debugger.step_back(0).kind, StopKind::Begin);
}

TEST(GdbDebugger, LeavesTheMachineAsItIs) {
  std::unique_ptr<Pc> pc = two_walkers();
  NaturalRun run(*pc);
  {
    Debugger debugger(run, small());
    debugger.breakpoints = {kAdd};
    for (int i = 0; i < 100; ++i) debugger.go();
    debugger.go_back();
  }
  EXPECT_EQ(pc->run(30'000), PcStop::Budget);
  EXPECT_EQ(pc->state_hash(), plain_hash(pc->executed()));
}

// No interrupt arrives before the instruction after STI, even if a breakpoint stops in between.
TEST(GdbDebugger, ABreakpointBehindStiLetsNoInterruptIn) {
  // sti;  inc eax;  1: jmp 1b;  handler: mov ebx, eax;  2: jmp 2b
  const uint8_t code[] = {0xfb, 0x40, 0xeb, 0xfe, 0x89, 0xc3, 0xeb, 0xfe};
  const uint8_t gate[] = {0x04, 0x00, 0x08, 0x00, 0x00, 0x8e, 0x01, 0x00};  // 8:0x10004
  const uint8_t segment[] = {0xff, 0xff, 0x00, 0x00, 0x00, 0x9b, 0xcf, 0x00};
  std::unique_ptr<Pc> pc = make_tiny(code, 1);
  pc->ram().write(0x2000 + 2 * 8, gate);
  pc->ram().write(0x3000 + 8, segment);
  pc->cpu(0).regs.idtr = {.base = 0x2000, .limit = 0xff};
  pc->cpu(0).regs.gdtr = {.base = 0x3000, .limit = 0xf};
  NaturalRun run(*pc);
  Debugger debugger(run, {.slice = 100, .between = [] { return true; }});
  ASSERT_EQ(debugger.step(0).kind, StopKind::Step);
  pc->devices().press_nmi_button();
  debugger.changed();
  debugger.breakpoints = {kTinyCode + 1, kTinyCode + 4};
  ASSERT_EQ(debugger.go().kind, StopKind::Break);
  EXPECT_EQ(debugger.address_of(0), kTinyCode + 1);
  ASSERT_EQ(debugger.go().kind, StopKind::Break);
  EXPECT_EQ(debugger.address_of(0), kTinyCode + 4);
  EXPECT_EQ(debugger.position(), (HistoryPoint{.executed = 2, .delivered = true}));
  EXPECT_EQ(pc->cpu(0).gpr(kRax), 1u);
}

TEST(GdbDebugger, TheEndOfTheGuestIsAPlaceToGoBackFrom) {
  // mov ecx, 50;  1: dec ecx;  jnz 1b;  mov dx, 0x604;  mov ax, 0x2000;  out dx, ax
  const uint8_t code[] = {0xb9, 50,   0,    0,    0,    0x49, 0x75, 0xfd, 0x66, 0xba,
                          0x04, 0x06, 0x66, 0xb8, 0x00, 0x20, 0x66, 0xef, 0xeb, 0xfe};
  std::unique_ptr<Pc> pc = make_tiny(code, 1);
  NaturalRun run(*pc);
  Debugger debugger(run, {});
  for (int i = 0; i < 3; ++i) {
    const DebugStop stop = debugger.go();
    EXPECT_EQ(stop.kind, StopKind::End);
    EXPECT_EQ(stop.why, PcStop::PowerOff);
    EXPECT_EQ(debugger.position().executed, 104u);
  }
  EXPECT_EQ(debugger.step(0).kind, StopKind::End);
  debugger.breakpoints = {kTinyCode + 5};
  EXPECT_EQ(debugger.go_back().kind, StopKind::Break);
  EXPECT_EQ(pc->cpu(0).gpr(kRcx), 1u);
  debugger.breakpoints.clear();
  EXPECT_EQ(debugger.go().kind, StopKind::End);
}

TEST(GdbDebugger, WhatIsPrintedIsShownOnceAndWhatIsTypedComesAgain) {
  // A read of the keyboard's line and an echo: 1: mov dx, 0x3fd; in al, dx; test al, 1; jz 1b;
  // mov dx, 0x3f8; in al, dx; out 0xe9, al; jmp 1b
  const uint8_t code[] = {0x66, 0xba, 0xfd, 0x03, 0xec, 0xa8, 0x01, 0x74, 0xf7,
                          0x66, 0xba, 0xf8, 0x03, 0xec, 0xe6, 0xe9, 0xeb, 0xee};
  std::unique_ptr<Pc> pc = make_tiny(code, 1);
  NaturalRun run(*pc);
  uint64_t calls = 0;
  const auto between = [&] {
    ++calls;
    if (calls % 7 == 0 && run.at_furthest()) run.type(std::string(1, static_cast<char>('a' + calls / 7)));
    return calls == 40;
  };
  Debugger debugger(run, {.checkpoint_every = 300, .most_checkpoints = 4, .slice = 100, .between = between});
  EXPECT_EQ(debugger.go().kind, StopKind::Interrupted);
  const std::string printed = run.take_output();
  EXPECT_EQ(printed, "bcdef");
  const uint64_t hash = pc->state_hash(), end = debugger.position().executed;
  debugger.breakpoints = {kTinyCode + 14};
  for (size_t i = printed.size(); i > 0; --i) {
    ASSERT_EQ(debugger.go_back().kind, StopKind::Break);
    EXPECT_EQ(pc->cpu(0).gpr(kRax) & 0xff, static_cast<uint8_t>(printed[i - 1]));
  }
  debugger.breakpoints.clear();
  while (debugger.position().executed < end) ASSERT_EQ(debugger.step(0).kind, StopKind::Step);
  EXPECT_EQ(pc->state_hash(), hash);
  EXPECT_EQ(run.take_output(), "");
}

}  // namespace
}  // namespace slalom::vm
