// The end of an interrupt's context: at the return that pops its own frame, or when its CPU switches to
// another thread, but not when the handler switches to its own stack. Also the last words of a dying kernel,
// which may come in an interrupt.
#include <gtest/gtest.h>

#include <map>

#include "learn/communication.h"
#include "unit/vm/tiny_code.h"
#include "unit/vm/tiny_machine.h"
#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/linux_traits.h"

namespace slalom::vm {
namespace {

constexpr uint8_t kVector = 0xf6;
constexpr uint32_t kGdt = 0x1000, kIdt = 0x2000, kHandler = 0x20000, kThread = 0x34000, kMarks = 0x100000;

std::unique_ptr<KernelMachine> make_with_handler(const TinyCode& flow, const TinyCode& handler,
                                                 uint8_t vector = kVector, CodeRange interruptible = {}) {
  std::unique_ptr<Pc> pc = make_tiny(flow.bytes, 1);
  pc->ram().write(kHandler, handler.bytes);
  TinyCode tables;
  tables.word(0).word(0).word(0x0000ffff).word(0x00cf9a00).word(0x0000ffff).word(0x00cf9200);
  pc->ram().write(kGdt, tables.bytes);
  TinyCode gate;
  gate.word(8u << 16 | (kHandler & 0xffff)).word((kHandler & 0xffff0000) | 0x8e00);
  pc->ram().write(kIdt + 8 * vector, gate.bytes);
  Pc::Rest rest = pc->rest();
  rest.cpus[0].gdtr = {kGdt, 23};
  rest.cpus[0].idtr = {kIdt, 0x7ff};
  CHECK(pc->set_rest(rest).ok(), "the tables");
  return std::make_unique<KernelMachine>(
      Booted{.pc = std::move(pc), .kernel = "", .identity = ""},
      KernelMachineOptions{.flows = 1, .guest = linux_traits(), .interruptible = interruptible},
      std::make_shared<NumberNames>());
}

// Which agent wrote each mark, and the console output.
struct RunRecord : EventSink {
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access : accesses)
      if (access.wrote && access.address().raw >= kMarks && access.address().raw < kMarks + 0x100)
        by[access.address().raw - kMarks] = header.agent;
  }
  void on_event(const Event& event) override {
    if (event.op == OpKind::Console) console.emplace_back(event.text);
  }
  void on_end(const Outcome&) override {}
  std::map<uint64_t, AgentId> by;
  std::vector<std::string> console;
};

// Delivers interrupts as soon as possible.
RunRecord run(KernelMachine& machine) {
  RunRecord seen;
  EXPECT_TRUE(
      machine.reset({.policy = {.where = ChoicePolicy::Where::Everywhere}, .max_steps = 1'000'000}).ok());
  Stop stop = machine.start(seen);
  while (std::holds_alternative<ChoicePoint>(stop)) {
    const ChoicePoint& point = std::get<ChoicePoint>(stop);
    AgentId next = point.options().front().agent;
    for (const Option& option : point.options())
      if (option.op.kind == OpKind::IrqEnter) next = option.agent;
    stop = machine.resume({.next = next});
  }
  EXPECT_TRUE(std::holds_alternative<Exited>(std::get<Outcome>(stop)));
  return seen;
}

const AgentId kCpu = KernelMachine::cpu_agent(0), kInterrupt = KernelMachine::interrupt_agent(0, kVector);

TinyCode flow() {
  return TinyCode().call_next().interrupt_self(kVector).add({0xfb, 0x90}).store(kMarks, 1).done();  // sti;
                                                                                                    // nop
}

TEST(InterruptContexts, EndAtTheReturnThatPopsTheirOwnFrame) {
  const auto machine =
      make_with_handler(flow(), TinyCode().store(kMarks + 4, 1).end_of_interrupt().add({0xcf}));  // iret
  const RunRecord seen = run(*machine);
  EXPECT_EQ(seen.by, (std::map<uint64_t, AgentId>{{0, kCpu}, {4, kInterrupt}}));
}

// Memory that a CPU shares with its own interrupt makes choice points in some code, as the generic learner
// finds, too. The id of an interrupt with a low vector does not show its CPU.
TEST(InterruptContexts, CommunicateWithTheirCpuInSomeCode) {
  for (const uint8_t vector : {kVector, uint8_t{0x31}})
    for (const CodeRange code :
         {CodeRange{}, CodeRange{kHandler, kHandler + 0x1000}, CodeRange{0, kThread}}) {
      const TinyCode flow =
          TinyCode().call_next().interrupt_self(vector).add({0xfb, 0x90}).store(kMarks, 1).done();
      const TinyCode handler =
          TinyCode().store(kMarks, 2).store(kMarks + 8, 2).end_of_interrupt().add({0xcf});
      const auto machine = make_with_handler(flow, handler, vector, code);
      CommunicationLearner learner(Place{code.begin}, Place{code.end});
      for (const bool at_end : {false, true}) {
        learner.reset();
        ASSERT_TRUE(machine->reset({.max_steps = 1'000'000, .reporting = {.at_end = at_end}}).ok());
        Stop stop = machine->start(learner);
        bool arrived = false;
        while (std::holds_alternative<ChoicePoint>(stop)) {
          AgentId next = std::get<ChoicePoint>(stop).options().front().agent;
          for (const Option& option : std::get<ChoicePoint>(stop).options())
            if (option.op.kind == OpKind::IrqEnter) next = option.agent;
          arrived |= next == KernelMachine::interrupt_agent(0, vector);
          stop = machine->resume({.next = next});
        }
        EXPECT_TRUE(arrived);
        EXPECT_EQ(machine->ending().knowledge->places, learner.knowledge().places);
        EXPECT_EQ(learner.knowledge().places.size(), code.end == 0 ? 0u : code.begin == 0 ? 2u : 1u);
      }
    }
}

TEST(InterruptContexts, EndWhereTheCpuGoesOnToAnotherThread) {
  // The other thread ends the flow instead of the interrupted one.
  const auto machine = make_with_handler(flow(), TinyCode()
                                                     .call_next()
                                                     .store(kMarks + 4, 1)
                                                     .end_of_interrupt()
                                                     .set_esp(kThread + 0x3000)
                                                     .call_next()
                                                     .store(kMarks + 8, 1)
                                                     .done());
  const RunRecord seen = run(*machine);
  EXPECT_EQ(seen.by, (std::map<uint64_t, AgentId>{{4, kInterrupt}, {8, kCpu}}));
}

TEST(InterruptContexts, GoOnOnAStackForInterrupts) {
  constexpr uint32_t kTop = kThread + 0x3ff0;
  const auto machine =
      make_with_handler(flow(), TinyCode()
                                    .call_next()
                                    .add({0x89, 0x25})  // mov [kTop], esp
                                    .word(kTop)
                                    .set_esp(kTop)
                                    .add({0x6a, 0x00})  // push 0: as far from the top as in 64-bit code
                                    .call(TinyCode().store(kMarks + 4, 1))
                                    .add({0x58})  // pop eax
                                    .call(TinyCode())
                                    .add({0x8b, 0x25})  // mov esp, [kTop]
                                    .word(kTop)
                                    .call_next()
                                    .store(kMarks + 8, 1)
                                    .add({0x83, 0xc4, 0x08})  // add esp, 8: removes what call_next() pushed
                                    .end_of_interrupt()
                                    .add({0xcf}));
  const RunRecord seen = run(*machine);
  EXPECT_EQ(seen.by, (std::map<uint64_t, AgentId>{{0, kCpu}, {4, kInterrupt}, {8, kInterrupt}}));
}

TEST(InterruptContexts, OfADyingKernelStillSayWhatItHasToSay) {
  // When Linux 6.12 must not print, it leaves printing to an interrupt that it sends itself, or to the next
  // tick. Then it sleeps, or its flow is done, with interrupts enabled.
  enum class Later : uint8_t { Interrupt, Tick, Done };
  for (const Later later : {Later::Interrupt, Later::Tick, Later::Done}) {
    TinyCode dying = TinyCode().print("BUG: scheduling while atomic: init/1\n");
    if (later == Later::Tick) {
      dying.store(0xfee000f0, 0x1ff).store(0xfee00320, kVector);                  // the APIC, and its timer
      dying.store(0xfee003e0, 0xb).store(0xfee00380, uint32_t{100} * 1'000'000);  // a long time
    } else {
      dying.interrupt_self(kVector);
    }
    if (later == Later::Done)
      dying.add({0xfb}).done();
    else
      dying.add({0xfb, 0xf4}).store(kMarks, 1).add({0xf4, 0xeb, 256 - 3});  // sti; hlt; ...; hlt, for ever
    const auto machine =
        make_with_handler(dying, TinyCode().print("Call Trace:\n").end_of_interrupt().add({0xcf}));
    const RunRecord seen = run(*machine);
    EXPECT_EQ(seen.console, (std::vector<std::string>{"BUG: scheduling while atomic: init/1", "Call Trace:"}))
        << static_cast<int>(later);
    EXPECT_TRUE(seen.by.empty());  // what it still does is not emitted
  }
}

}  // namespace
}  // namespace slalom::vm
