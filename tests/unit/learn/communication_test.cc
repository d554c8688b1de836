#include "learn/communication.h"

#include <gtest/gtest.h>

#include "unit/learn/stream.h"

namespace slalom {
namespace {

using test::kX;
using test::LearnerFeed;

TEST(CommunicationLearner, FindsAllAccessesToSharedMemory) {
  CommunicationLearner learner;
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).store(0, 'b', kX).load(1, 'c', kX).places(), "abc");
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).load(1, 'b', kX).places(), "");   // nobody writes
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).load(0, 'b', kX).places(), "");  // one CPU
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX).load(1, 'b', kX + 8).places(), "");
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX, 24).load(1, 'b', kX + 16).places(), "ab");
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', kX, 24).load(1, 'b', kX + 24).places(), "");
  // An instruction that accesses private memory, too.
  EXPECT_EQ(LearnerFeed(learner).store(0, 'a', 0x9000).store(0, 'a', kX).load(1, 'b', kX).places(), "ab");
}

TEST(CommunicationLearner, GoesByPhysicalAddresses) {
  CommunicationLearner learner;
  Access first = LearnerFeed::make('a', OpKind::Store, kX), second = LearnerFeed::make('b', OpKind::Load, kX);
  second.physical = 0x7000;
  EXPECT_EQ(
      LearnerFeed(learner).access(LearnerFeed::id(0), first).access(LearnerFeed::id(1), second).places(), "");
  first.physical = 0x7000;
  EXPECT_EQ(
      LearnerFeed(learner).access(LearnerFeed::id(0), first).access(LearnerFeed::id(1), second).places(),
      "ab");
}

TEST(CommunicationLearner, IgnoresWhatIsNotOrdered) {
  CommunicationLearner learner;
  Access outside = LearnerFeed::make('b', OpKind::Store, kX), call = outside;
  outside.unordered = 1;
  call.op_bits = static_cast<uint64_t>(OpKind::Call);
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).access(LearnerFeed::id(1), outside).places(), "");
  EXPECT_EQ(LearnerFeed(learner).load(0, 'a', kX).access(LearnerFeed::id(1), call).places(), "");
}

TEST(CommunicationLearner, InterruptsBelongToTheirCpu) {
  // An id of a low line shows its CPU. One of a high line does not; its event says which it was.
  const AgentId near = LearnerFeed::id(0).interrupt(3), far = LearnerFeed::id(0).interrupt(0x130);
  for (const AgentId interrupt : {near, far}) {
    const Event enters = {.agent = interrupt, .op = OpKind::IrqEnter, .object = ObjectId{0}};
    const Access read = LearnerFeed::make('b', OpKind::Load, kX);
    for (const bool in_code : {false, true}) {
      CommunicationLearner learner(Place{'b'}, in_code ? Place{'c'} : Place{'b'});
      const auto feed = [&](uint32_t cpu) {
        // Its first accesses come before the event.
        return LearnerFeed(learner).store(cpu, 'a', kX).access(interrupt, read).event(enters).places();
      };
      EXPECT_EQ(feed(0), in_code ? "b" : "");
      EXPECT_EQ(feed(1), "ab");
    }
  }
}

TEST(CommunicationLearner, AllInterruptsOfACpuAreOneContext) {
  const AgentId outer = LearnerFeed::id(0).interrupt(3), inner = outer.interrupt(3);
  CommunicationLearner learner(Place{'a'}, Place{'z'});
  const Access write = LearnerFeed::make('a', OpKind::Store, kX),
               read = LearnerFeed::make('b', OpKind::Load, kX);
  EXPECT_EQ(LearnerFeed(learner).access(outer, write).access(inner, read).places(), "");
  EXPECT_EQ(LearnerFeed(learner).access(outer, write).access(LearnerFeed::id(0), read).places(), "ab");
}

TEST(CommunicationLearner, MoreAgentsThanItHasBitsForCommunicate) {
  CommunicationLearner learner;
  LearnerFeed feed(learner);
  for (uint32_t agent = 0; agent < 70; ++agent) feed.load(agent, 'x', 0x100000 + 64 * agent);
  EXPECT_EQ(feed.store(68, 'a', kX).load(69, 'b', kX).places(), "ab");
}

}  // namespace
}  // namespace slalom
