// Compares the collector with the generic learner. Also accesses that span several granules of memory, and
// pauses at different distances.
#include "vm/control/communication.h"

#include <gtest/gtest.h>

#include "learn/communication.h"
#include "unit/vm/random_execution.h"
#include "vm/control/liveness.h"

namespace slalom::vm {
namespace {

using test::Batch;
using test::Stream;

// Not every id of an interrupt shows its CPU.
TEST(Communication, TeachesWhatTheGenericLearnerDoes) {
  Stream maker;
  size_t by_cpus = 0, by_interrupts = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const std::vector<Batch> execution = test::interleave(rng, test::random_programs(rng, maker));
    for (const bool in_code : {false, true})
      for (const uint32_t line : {0x1cu, 0x130u}) {
        const CodeRange code{1000, 1000 + (in_code ? maker.places.names.size() / 2 : 0)};
        Communication fast;
        fast.set_interruptible(code);
        CommunicationLearner generic(Place{code.begin}, Place{code.end});
        generic.reset();
        for (const Batch& batch : execution) {
          if (batch.accesses.empty()) continue;
          fast.add(context_of(batch.cpu, batch.interrupt), batch.accesses);
          fast.add_instructions(batch.accesses);
          const AgentId cpu = Stream::id(static_cast<int>(batch.cpu));
          const AgentId agent = batch.interrupt ? cpu.interrupt(line) : cpu;
          generic.on_accesses(batch.accesses, {agent, 0, batch.header.first_step});
          if (batch.interrupt)
            generic.on_event({.agent = agent, .op = OpKind::IrqEnter, .object = ObjectId{batch.cpu}});
        }
        ASSERT_EQ(fast.points(), generic.knowledge().places) << "seed " << seed;
        (in_code ? by_interrupts : by_cpus) += fast.points().size();
      }
  }
  EXPECT_GT(by_cpus, 5000u);
  EXPECT_GT(by_interrupts, by_cpus + 500);
}

TEST(WideAccesses, EachGranuleIsUsed) {
  for (const uint64_t read_at : {0x1000u, 0x1008u, 0x1010u, 0x1018u}) {
    Stream maker;
    Communication communication;
    const std::vector<Access> write = {maker.make(OpKind::Store, "writer", 0x1000, true, 24, 0)};
    const std::vector<Access> read = {maker.make(OpKind::Load, "reader", read_at, false, 8, 0)};
    communication.add(0, write);
    communication.add_instructions(write);
    communication.add(1, read);
    communication.add_instructions(read);
    EXPECT_EQ(communication.points().size(), read_at < 0x1018 ? 2u : 0u) << read_at;
  }
}

Access load_of(uint64_t address) {
  Access access = {};
  access.address_bits = address;
  access.size = 8;
  return access;
}

TEST(Pauses, OnlyTwoThatAreNearAreAWait) {
  for (const uint64_t apart : {Liveness::kPauseWindow, Liveness::kPauseWindow + 1}) {
    Liveness liveness;
    liveness.on_pause(1000);
    liveness.on_accesses(std::vector{load_of(0x2000)});
    liveness.on_pause(1000 + apart);
    EXPECT_EQ(liveness.live(), apart > Liveness::kPauseWindow);
    EXPECT_EQ(liveness.waits_for().size(), liveness.live() ? 0u : 1u);
  }
}

}  // namespace
}  // namespace slalom::vm
