// Watched functions in a program whose calls are known, shadow stacks, LinuxFunctions with a table of
// symbols, and the lines of TraceLines.
#include <gtest/gtest.h>

#include <algorithm>

#include "vm/boot/boot.h"
#include "vm/cpu/observe/shadow_stacks.h"
#include "vm/guests/linux/linux_functions.h"
#include "vm/guests/linux/symbol_names.h"
#include "vm/guests/linux/trace_lines.h"

namespace slalom::vm {
namespace {

//    0  mov edi, 5;  call f
//    a  mov edi, 7;  call g
//   14  jmp .
//   16  f: lea eax, [rdi + 1];  ret
//   1a  g: add edi, 1;  jmp f
constexpr uint8_t kCode[] = {0xbf, 5, 0, 0, 0,    0xe8, 0x0c, 0,    0, 0,    0xbf, 7,    0, 0,    0,   0xe8,
                             6,    0, 0, 0, 0xeb, 0xfe, 0x8d, 0x47, 1, 0xc3, 0x83, 0xc7, 1, 0xeb, 0xf7};
constexpr uint64_t kStart = 0x10000, kF = kStart + 0x16, kG = kStart + 0x1a, kStack = 0x9000;

std::unique_ptr<Pc> make_long() {
  std::unique_ptr<Pc> pc = std::move(Pc::make({.memory = uint64_t{2} << 20}).value());
  pc->ram().write(kStart, kCode);
  const auto put = [&](Physical at, uint64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(value >> 8 * i);
    pc->ram().write(at, bytes);
  };
  put(0x1000, 0x2003);
  put(0x2000, 0x3003);
  put(0x3000, 0x83);  // maps the first 2 MiB one to one
  pc->enter({.rip = kStart, .rsp = kStack, .cr3 = 0x1000, .code_selector = 8, .data_selector = 16});
  return pc;
}

struct ToldCalls {
  CpuEvent::Kind kind;
  uint64_t function, back, argument, result, step, since;
  bool operator==(const ToldCalls&) const = default;
};

class Listener : public TapSink {
 public:
  void on_batch(const Cpu&, std::span<const Access> accesses, uint64_t) override {
    for (const Access& access : accesses) stacks.on_transfer(access);
  }
  void on_event(const Cpu&, const CpuEvent& event, uint64_t step) override {
    if (event.kind != CpuEvent::Kind::FunctionEntry && event.kind != CpuEvent::Kind::FunctionReturn) return;
    told.push_back({event.kind, event.pc, event.number, event.arguments[0], event.value, step, event.since});
    depths.push_back(stacks.frames(event.stack).size());
  }
  std::vector<ToldCalls> told;
  std::vector<size_t> depths;
  ShadowStacks stacks{KernelStacks()};
};

void listen(Listener& listener, uint64_t slice, std::vector<uint64_t> functions) {
  const std::unique_ptr<Pc> pc = make_long();
  Tap tap(listener, {.accesses = false, .calls = true});
  for (const uint64_t function : functions) tap.functions.add(function);
  pc->attach(&tap);
  for (uint64_t done = 0; done < 20; done += slice) pc->run(slice);
  pc->attach(nullptr);
}

constexpr auto kEntry = CpuEvent::Kind::FunctionEntry, kReturn = CpuEvent::Kind::FunctionReturn;

TEST(FunctionWatch, CallsAndJumpsReturnWhereTheFirstWasCalled) {
  const std::vector<ToldCalls> expected = {
      {kEntry, kF, kStart + 0x0a, 5, 0, 2, 2},   {kReturn, kF, kStart + 0x0a, 5, 6, 4, 2},
      {kEntry, kG, kStart + 0x14, 7, 0, 6, 6},   {kEntry, kF, kStart + 0x14, 8, 0, 8, 8},
      {kReturn, kF, kStart + 0x14, 8, 9, 10, 8}, {kReturn, kG, kStart + 0x14, 7, 9, 10, 6},
  };
  for (const uint64_t slice : {20, 1, 3}) {
    Listener listener;
    listen(listener, slice, {kF, kG});
    EXPECT_EQ(listener.told, expected) << slice;
    EXPECT_EQ(listener.depths, (std::vector<size_t>{1, 0, 1, 1, 0, 0})) << slice;
  }
}

TEST(FunctionWatch, TellsOnlyWhatIsWatched) {
  Listener one, none;
  listen(one, 20, {kG});
  EXPECT_EQ(one.told.size(), 2u);
  listen(none, 20, {});
  EXPECT_TRUE(none.told.empty());
}

Access transfer(OpKind op, uint64_t pc, uint64_t target, uint64_t stack) {
  Access access{};
  access.pc_bits = pc;
  access.op_bits = static_cast<uint8_t>(op);
  access.address_bits = target;
  access.value = stack;
  return access;
}

TEST(ShadowStacks, FramesEndWhereTheStackRisesAboveThem) {
  ShadowStacks stacks{KernelStacks()};
  stacks.on_transfer(transfer(OpKind::Call, 0x100, 0x200, 0x7ff0));
  stacks.on_transfer(transfer(OpKind::Call, 0x210, 0x300, 0x7fd0));
  stacks.on_transfer(transfer(OpKind::Call, 0x900, 0xa00, 0xfff0));  // another stack
  ASSERT_EQ(stacks.frames(0x7fc0).size(), 2u);
  EXPECT_EQ(stacks.frames(0x7fc0)[0].function, 0x300u);
  EXPECT_EQ(stacks.frames(0x7fc0)[1].call, 0x100u);
  EXPECT_EQ(stacks.frames(0xff00).size(), 1u);
  // A return that skips both, as longjmp does.
  stacks.on_transfer(transfer(OpKind::Return, 0x310, 0x105, 0x7ff8));
  EXPECT_TRUE(stacks.frames(0x7ff8).empty());
  EXPECT_EQ(stacks.frames(0xff00).size(), 1u);
  // A call with the stack pointer of an older one that never returned.
  stacks.on_transfer(transfer(OpKind::Call, 0x100, 0x200, 0x7ff0));
  stacks.on_transfer(transfer(OpKind::Call, 0x120, 0x400, 0x7ff0));
  ASSERT_EQ(stacks.frames(0x7ff0).size(), 1u);
  EXPECT_EQ(stacks.frames(0x7ff0)[0].function, 0x400u);
}

TEST(ShadowStacks, HaveTheSizeOfTheGuest) {
  ShadowStacks small{{.size = 8192}}, large{{.size = 32768}};
  for (ShadowStacks* stacks : {&small, &large}) {
    stacks->on_transfer(transfer(OpKind::Call, 0x100, 0x200, 0x7ff0));
    stacks->on_transfer(transfer(OpKind::Call, 0x210, 0x300, 0x5ff0));
  }
  EXPECT_EQ(small.depth(0x5f00), 1u);  // 0x7ff0 is on another stack
  EXPECT_EQ(large.depth(0x5f00), 2u);
}

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

TEST(LinuxFunctions, WhatAKernelHasNotIsMissing) {
  const SymbolTable symbols({{.address = 0x1000, .name = "_raw_spin_lock", .type = 'T'},
                             {.address = 0x2000, .name = "mutex_lock", .type = 'T'},
                             {.address = 0x3000, .name = "finish_task_switch.isra.0", .type = 't'},
                             {.address = 0x4000, .name = "mutex_unlock", .module = "other", .type = 't'}});
  const LinuxFunctions locks(symbols, LinuxFunctions::kLocks | LinuxFunctions::kTasks);
  ASSERT_NE(locks.at(0x1000), nullptr);
  EXPECT_EQ(locks.at(0x1000)->group, "spin_lock");
  EXPECT_EQ(locks.at(0x1000)->op, OpKind::Lock);
  ASSERT_NE(locks.at(0x3000), nullptr);
  EXPECT_EQ(locks.at(0x3000)->role, LinuxFunction::Role::TaskSwitched);
  EXPECT_EQ(locks.at(0x1001), nullptr);
  EXPECT_FALSE(has(locks.missing(), "spin_lock"));
  EXPECT_TRUE(has(locks.missing(), "spin_unlock"));
  EXPECT_TRUE(has(locks.missing(), "mutex_unlock")) << "a module's function of that name is another";
  EXPECT_TRUE(has(locks.missing(), "seqlock"));
  EXPECT_FALSE(has(locks.missing(), "kmalloc")) << "nobody asked";
  EXPECT_EQ(LinuxFunctions(symbols, LinuxFunctions::kMemory).at(0x1000), nullptr);
}

TEST(TraceLines, NameTasksAndPlaces) {
  const SymbolTable symbols({{.address = 0x1000, .size = 0x100, .name = "reader", .type = 'T'},
                             {.address = 0x2000, .size = 8, .name = "counter", .type = 'D'}});
  const SymbolNames names(symbols);
  TraceLines lines(names);
  const AgentId cpu = AgentId::initial(1);
  EXPECT_EQ(lines.event({.step = Step{7}, .agent = cpu, .op = OpKind::SyscallEnter, .text = "getpid()"}),
            "          7 cpu1 ?                syscall getpid()");
  EXPECT_EQ(
      lines.event({.step = Step{8}, .agent = cpu, .op = OpKind::ThreadSwitch, .value = 3, .text = "sh/3"}),
      "          8 cpu1 ?                switch  to sh/3");
  EXPECT_EQ(
      lines.event({.step = Step{9}, .agent = cpu, .op = OpKind::SyscallExit, .value = -2, .text = "open"}),
      "          9 cpu1 sh/3             syscall open = -ENOENT");
  EXPECT_EQ(lines.event({.step = Step{10},
                         .agent = cpu,
                         .op = OpKind::Lock,
                         .pc = Place{0x1010},
                         .object = ObjectId{0x2000},
                         .text = "spin_lock"}),
            "         10 cpu1 sh/3             lock    spin_lock counter  at reader+0x10");
  const Event call{.step = Step{11}, .agent = cpu, .op = OpKind::Call, .object = ObjectId{0x1000}};
  const Event back{
      .step = Step{12}, .agent = cpu, .op = OpKind::Return, .object = ObjectId{0x1000}, .value = 5};
  lines.event(call);
  EXPECT_EQ(lines.event(call), "         11 cpu1 sh/3             call      reader()  at 0x0");
  EXPECT_EQ(lines.event(back), "         12 cpu1 sh/3             call      reader = 5");
  EXPECT_EQ(lines.event(back), "         12 cpu1 sh/3             call    reader = 5");
}

}  // namespace
}  // namespace slalom::vm
