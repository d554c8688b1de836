// Stops at places, watched accesses, hypercalls, and control of single CPUs. A stop must not change how the
// machine goes on.
#include <gtest/gtest.h>

#include "unit/vm/tiny_machine.h"
#include "vm/pc/pc.h"

namespace slalom::vm {
namespace {

class Counted : public TapSink {
 public:
  void on_batch(const Cpu&, std::span<const Access> batch, uint64_t) override {
    accesses.insert(accesses.end(), batch.begin(), batch.end());
  }
  void on_event(const Cpu&, const CpuEvent& event, uint64_t) override { events.push_back(event.kind); }
  std::vector<Access> accesses;
  std::vector<CpuEvent::Kind> events;
};

uint64_t hash_after(uint64_t instructions) {
  std::unique_ptr<Pc> pc = make_tiny();
  EXPECT_EQ(pc->run(instructions), PcStop::Budget);
  return pc->state_hash();
}

// kWalker: `add [ebx + 0x100000], eax` at 0x1001b, `mov [2f + 1], eax` at 0x10021
constexpr Physical kAddPlace = kTinyCode + 27, kPatch = kTinyCode + 33;

TEST(Control, StopsBeforeAPlaceEachTimeAndGoesOnAsIfItHadNot) {
  std::unique_ptr<Pc> pc = make_tiny();
  Counted sink;
  Tap tap(sink, {.accesses = false, .events = false});
  pc->attach(&tap);
  pc->set_places({.where = Places::Where::Listed, .listed = {kAddPlace}});
  uint64_t stops = 0;
  while (pc->executed() < 5'000) {
    const PcStop why = pc->run(5'000 - pc->executed());
    if (why != PcStop::Place) break;
    ASSERT_EQ(pc->cpu(0).gpr(kRip), kAddPlace);
    ++stops;
  }
  EXPECT_EQ(pc->executed(), 5'000u);
  EXPECT_GT(stops, 400u);  // one in each round of eleven or twelve instructions
  EXPECT_EQ(pc->state_hash(), hash_after(5'000));
  EXPECT_TRUE(sink.accesses.empty());
}

TEST(Control, PassesAsManyPlacesAsItIsTold) {
  std::unique_ptr<Pc> pc = make_tiny(kWalker, 1);
  Counted sink;
  Tap tap(sink);
  pc->attach(&tap);
  pc->set_places({.where = Places::Where::Memory, .listed = {}});
  // Two places in a round: the addition and the patch.
  ASSERT_EQ(pc->run_cpu(0, {.passes = 0}), PcStop::Place);
  EXPECT_EQ(pc->cpu(0).gpr(kRip), kAddPlace);
  EXPECT_EQ(pc->passed(), 0u);
  ASSERT_EQ(pc->run_cpu(0, {.passes = 6}), PcStop::Place);
  EXPECT_EQ(pc->cpu(0).gpr(kRip), kPatch);  // six more, and the one at which it stood
  EXPECT_EQ(pc->passed(), 7u);
  ASSERT_EQ(pc->run_cpu(0, {.instructions = 3, .passes = 100}), PcStop::Budget);
}

TEST(Control, APlaceThatIsGoneLetsNoOtherPass) {
  std::unique_ptr<Pc> pc = make_tiny(kWalker, 1);
  Counted sink;
  Tap tap(sink);
  pc->attach(&tap);
  pc->set_places({.where = Places::Where::Listed, .listed = {kAddPlace}});
  ASSERT_EQ(pc->run_cpu(0, {}), PcStop::Place);
  const uint64_t before = pc->executed();
  pc->set_places({.where = Places::Where::Listed, .listed = {kPatch}});
  ASSERT_EQ(pc->run_cpu(0, {}), PcStop::Place);
  EXPECT_EQ(pc->cpu(0).gpr(kRip), kPatch);
  EXPECT_EQ(pc->executed(), before + 1);  // the next instruction, not the one in the next round
}

TEST(Control, StopsBeforeOrAfterAWatchedAccess) {
  for (const bool after : {false, true}) {
    std::unique_ptr<Pc> pc = make_tiny(kWalker, 1);
    Counted sink;
    Tap tap(sink);
    tap.watches = {{.first = kPatch + 6, .last = kPatch + 6, .reads = false, .after = after}};
    pc->attach(&tap);
    uint64_t hits = 0;
    while (pc->executed() < 2'000) {
      const PcStop why = pc->run(2'000 - pc->executed());
      if (why != PcStop::Access) break;
      ++hits;
      ASSERT_EQ(pc->cpu(0).gpr(kRip), after ? kPatch + 5 : kPatch);
      EXPECT_EQ(pc->cpu(0).hit.pc, kPatch);
      EXPECT_TRUE(pc->cpu(0).hit.write);
      uint8_t patched[4];
      pc->ram().read(kPatch + 6, patched);
      const auto value = static_cast<uint32_t>(patched[0] | patched[1] << 8 | patched[2] << 16) |
                         static_cast<uint32_t>(patched[3]) << 24;
      EXPECT_EQ(value == static_cast<uint32_t>(pc->cpu(0).gpr(kRax)), after);
    }
    EXPECT_GT(hits, 100u);
    std::unique_ptr<Pc> calm = make_tiny(kWalker, 1);
    calm->run(2'000);
    pc->attach(nullptr);
    EXPECT_EQ(pc->state_hash(), calm->state_hash());
  }
}

TEST(Control, StopsBeforeEachAccessOfAnInstructionThatMakesSeveral) {
  // 1: push dword [0x100000];  pop dword [0x100010];  jmp 1b
  constexpr uint8_t kCode[] = {0xff, 0x35, 0x00, 0x00, 0x10, 0x00, 0x8f,
                               0x05, 0x10, 0x00, 0x10, 0x00, 0xeb, 0xf2};
  std::unique_ptr<Pc> pc = make_tiny(kCode, 1);
  Counted sink;
  Tap tap(sink);
  tap.watches = {{.first = 0, .last = ~uint64_t{0}}};
  pc->attach(&tap);
  std::vector<std::pair<uint64_t, unsigned>> seen;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(pc->run(1'000), PcStop::Access);
    const AccessHit& hit = pc->cpu(0).hit;
    seen.emplace_back(hit.address, hit.ordinal);
  }
  const std::vector<std::pair<uint64_t, unsigned>> once = {
      {0x100000, 0}, {0x8ffc, 1}, {0x8ffc, 0}, {0x100010, 1}};
  EXPECT_EQ(std::vector(seen.begin(), seen.begin() + 4), once);
  EXPECT_EQ(std::vector(seen.begin() + 4, seen.end()), once);
  // An access is recorded once, however often its instruction was begun.
  EXPECT_EQ(sink.accesses.size(), 6u);
}

TEST(Control, AHypercallReachesWhoeverAnswers) {
  // mov eax, 7;  mov edi, 8;  nopl 0x6c616c73(%eax,%eax,1);  1: jmp 1b
  constexpr uint8_t kCode[] = {0xb8, 7,    0,    0,    0,    0xbf, 8,    0,    0,    0,
                               0x0f, 0x1f, 0x84, 0x00, 0x73, 0x6c, 0x61, 0x6c, 0xeb, 0xfe};
  class Answer : public Hypercalls {
   public:
    bool on_hypercall(Cpu& cpu) override {
      asked = cpu.gpr(kRdi);
      cpu.gpr(kRax) += 100;
      return goes_on;
    }
    bool goes_on = true;
    uint64_t asked = 0;
  };
  for (const bool goes_on : {true, false}) {
    std::unique_ptr<Pc> pc = make_tiny(kCode, 1);
    Answer answer;
    answer.goes_on = goes_on;
    pc->set_hypercalls(&answer);
    EXPECT_EQ(pc->run(50), goes_on ? PcStop::Budget : PcStop::Hypercall);
    EXPECT_EQ(answer.asked, 8u);
    EXPECT_EQ(pc->cpu(0).gpr(kRax), 107u);
    EXPECT_EQ(pc->executed(), goes_on ? 50u : 3u);
  }
  // Without Hypercalls it is a NOP.
  std::unique_ptr<Pc> pc = make_tiny(kCode, 1);
  EXPECT_EQ(pc->run(50), PcStop::Budget);
  EXPECT_EQ(pc->cpu(0).gpr(kRax), 7u);
}

// Sends itself an interrupt in every round.
//
//         mov dword [0xfee000f0], 0x1ff     the APIC is on
//         mov eax, 0x40030                  to itself, vector 0x30
//         sti
//   1:    mov [0xfee00300], eax
//         inc ecx;  jmp 1b
constexpr uint8_t kSender[] = {0xc7, 0x05, 0xf0, 0x00, 0xe0, 0xfe, 0xff, 0x01, 0x00, 0x00, 0xb8, 0x30,
                               0x00, 0x04, 0x00, 0xfb, 0xa3, 0x00, 0x03, 0xe0, 0xfe, 0x41, 0xeb, 0xf8};

TEST(Control, StopsRightBehindWhatMadeAnInterruptDeliverable) {
  std::unique_ptr<Pc> pc = make_tiny(kSender, 1);
  for (unsigned round = 0; round < 5; ++round) {  // in later rounds the code is already decoded
    ASSERT_EQ(pc->run_cpu(0, {.instructions = 100, .stop_at_window = true}), PcStop::Window);
    EXPECT_EQ(pc->cpu(0).gpr(kRip), kTinyCode + 21);
    EXPECT_EQ(pc->cpu(0).gpr(kRcx), round);
  }
}

// The same once, and then in every round: cli; nop; sti; nop; nop; inc ecx; jmp.
constexpr uint8_t kMasker[] = {0xc7, 0x05, 0xf0, 0x00, 0xe0, 0xfe, 0xff, 0x01, 0x00, 0x00,
                               0xb8, 0x30, 0x00, 0x04, 0x00, 0xa3, 0x00, 0x03, 0xe0, 0xfe,
                               0xfa, 0x90, 0xfb, 0x90, 0x90, 0x41, 0xeb, 0xf8};

TEST(Control, WhereInterruptsBecomeDeliverableDoesNotDependOnWhereARunBegan) {
  const auto windows = [](uint64_t slice) {
    std::unique_ptr<Pc> pc = make_tiny(kMasker, 1);
    std::vector<uint64_t> found;
    while (pc->executed() < 200)
      if (pc->run_cpu(0, {.instructions = std::min(slice, 200 - pc->executed()), .stop_at_window = true}) ==
          PcStop::Window)
        found.push_back(pc->executed());
    return found;
  };
  const std::vector<uint64_t> whole = windows(200);
  // The first window follows the first `sti` and the instruction in its shadow: three instructions at the
  // start, then four.
  ASSERT_GT(whole.size(), 25u);
  EXPECT_EQ(whole[0], 7u);
  EXPECT_EQ(whole[1], 14u);
  for (uint64_t slice = 1; slice <= 20; ++slice) EXPECT_EQ(windows(slice), whole) << slice;
}

TEST(Control, AnInterruptThatWasOfferedIsNoReasonToStopAgain) {
  std::unique_ptr<Pc> pc = make_tiny(kMasker, 1);
  const auto run = [&](std::optional<uint8_t> offered) {
    return pc->run_cpu(0, {.instructions = 100, .stop_at_window = true, .offered = offered});
  };
  ASSERT_EQ(run({}), PcStop::Window);
  EXPECT_EQ(pc->next_vector(0), 0x30);
  EXPECT_EQ(run(0x30), PcStop::Budget);
  EXPECT_EQ(run(0x31), PcStop::Window);  // a different interrupt was offered
}

TEST(Control, AParkedCpuTakesNoTurn) {
  // Two CPUs in the same loop: 1: inc eax; jmp 1b
  constexpr uint8_t kCode[] = {0x40, 0xeb, 0xfd};
  std::unique_ptr<Pc> pc = make_tiny(kCode, 2);
  Pc::Rest rest = pc->rest();
  rest.cpus[1] = rest.cpus[0];
  rest.privileges[1] = rest.privileges[0];
  ASSERT_TRUE(pc->set_rest(rest).ok());
  pc->park(0, true);
  pc->run(1'000);
  EXPECT_EQ(pc->cpu(0).gpr(kRax), 0u);
  EXPECT_EQ(pc->cpu(1).gpr(kRax), 500u);
  pc->park(0, false);
  pc->park(1, true);
  pc->run(1'000);
  EXPECT_EQ(pc->cpu(0).gpr(kRax), 500u);
  EXPECT_EQ(pc->cpu(1).gpr(kRax), 500u);
  // Any order of single instructions is possible.
  for (int i = 0; i < 10; ++i)
    for (unsigned cpu : {0u, 1u, 1u}) EXPECT_EQ(pc->run_cpu(cpu, {.instructions = 1}), PcStop::Budget);
  EXPECT_EQ(pc->cpu(0).gpr(kRax), 505u);
  EXPECT_EQ(pc->cpu(1).gpr(kRax), 510u);
}

}  // namespace
}  // namespace slalom::vm
