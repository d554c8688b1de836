// Interrupts and timers.
#include "unit/toy/toy_support.h"

namespace slalom::test {
namespace {

using Kinds = std::set<std::string>;

const AgentId kWorker = initial(0);
const AgentId kTick = initial(0).interrupt(0);

TEST(ToyInterrupts, PreemptsItsThreadOnly) {
  ToyBuilder b;
  b.shared("x").thread("worker", "x = 1\nx = 2").interrupt("tick", "worker", "x = 3\nx = 4");
  ToyMachine machine(built(b));
  const Execution result = run(machine, scripted({{kWorker, 0}, {kTick, 0}}));
  const std::vector<std::string> expected = {
      "0 worker cpu use cpu(worker) state=0",
      "0 worker store x 1 w",
      "1 tick interrupt take tick state=1",
      "1 tick interrupt enter cpu(worker) state=0",
      "2 tick store x 3 w",
      "3 tick store x 4 w",
      "3 tick interrupt exit cpu(worker) state=2",
      "4 worker cpu use cpu(worker) state=0",
      "4 worker store x 2 w",
      "4 worker exit worker state=0 other=worker",
  };
  EXPECT_EQ(result.lines, expected);
  // The handler is atomic for its thread: it runs at 3 places, never in between.
  EXPECT_EQ(every_interleaving(b), (Outcomes{{"exited", 3}}));
  EXPECT_EQ(machine.names().place(Place{machine.pending(1).pc}), "tick:entry");
}

TEST(ToyInterrupts, OtherThreadsInterleaveWithTheHandler) {
  ToyBuilder b;
  b.shared("x")
      .thread("worker", "yield")
      .thread("other", "x = 1")
      .interrupt("tick", "worker", "r = x; assert r == x");
  EXPECT_EQ(kinds_of(every_interleaving(b)), (Kinds{"assertion: r == x", "exited"}));
}

TEST(ToyInterrupts, MaskKeepsItOut) {
  const auto program = [](const std::string& before, const std::string& after) {
    ToyBuilder b;
    b.shared("x").thread("worker", before + "x = x + 1\n" + after).interrupt("tick", "worker", "x = x + 1");
    b.final_check("x == 2", "lost");
    return b;
  };
  EXPECT_EQ(kinds_of(every_interleaving(program("", ""))), (Kinds{"assertion: final check: lost", "exited"}));
  EXPECT_EQ(kinds_of(every_interleaving(program("mask\n", "unmask\n"))), Kinds{"exited"});
  // If masked for ever, the interrupt never comes, and that is no deadlock.
  EXPECT_EQ(kinds_of(every_interleaving(program("mask\n", ""))),
            (Kinds{"assertion: final check: lost", "exited"}));
}

TEST(ToyInterrupts, MaskEvents) {
  ToyBuilder b;
  b.thread("worker", "mask\nunmask").interrupt("tick", "worker", "", 0);
  const std::vector<std::string> expected = {
      "0 worker cpu use cpu(worker) state=0", "0 worker interrupt mask cpu(worker) state=0",
      "1 worker cpu use cpu(worker) state=1", "1 worker interrupt unmask cpu(worker) state=1",
      "1 worker exit worker state=0 other=worker"};
  EXPECT_EQ(run(b).lines, expected);
}

TEST(ToyInterrupts, TimesAndRaise) {
  for (int64_t times = 0; times < 4; ++times) {
    ToyBuilder b;
    b.shared("n").thread("worker", "yield").interrupt("tick", "worker", "n = n + 1", times);
    b.thread("device", "raise tick; raise tick").final_check("n == " + std::to_string(times + 2));
    EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});
  }
  ToyBuilder b;
  b.thread("worker", "raise tick").interrupt("tick", "worker", "note \"in\"", 0);
  const std::vector<std::string> expected = {
      "0 worker cpu use cpu(worker) state=0",
      "0 worker interrupt raise tick state=0",
      "0 worker wake tick state=0 other=tick",
      "0 worker exit worker state=0 other=worker",
      "1 tick interrupt take tick state=1",
      "1 tick interrupt enter cpu(worker) state=0",  // also after its thread has ended
      "1 tick note \"in\"",
      "1 tick interrupt exit cpu(worker) state=2"};
  EXPECT_EQ(run(b).lines, expected);
}

TEST(ToyInterrupts, LocalsAreFreshEachTime) {
  ToyBuilder b;
  b.thread("worker", "yield; yield").interrupt("tick", "worker", "assert r == 0\nr = 1\nyield", 2);
  EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});
}

TEST(ToyInterrupts, HandlerThatWaitsForItsThreadDeadlocks) {
  ToyBuilder b;
  b.sync("m", ToySyncKind::Mutex)
      .thread("worker", "lock m; unlock m")
      .interrupt("tick", "worker", "lock m; unlock m");
  EXPECT_EQ(kinds_of(every_interleaving(b)), (Kinds{"deadlocked", "exited"}));
  const Execution stuck = run(b, scripted({{kWorker, 0}, {kTick, 0}}));
  const auto& waiting = std::get<Deadlocked>(stuck.outcome).waiting;
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[0].agent, kWorker);
  EXPECT_EQ(waiting[0].op, OpKind::CpuUse);
  EXPECT_EQ(waiting[0].held_by, std::vector{kTick});
  EXPECT_EQ(waiting[1].op, OpKind::Lock);
  EXPECT_EQ(waiting[1].held_by, std::vector{kWorker});
}

TEST(ToyInterrupts, DeadlockNamesTheMaskedInterrupt) {
  ToyBuilder b;
  b.sync("s", ToySyncKind::Semaphore).thread("worker", "mask; down s").interrupt("tick", "worker", "up s");
  const Execution stuck = run(b);
  const auto& waiting = std::get<Deadlocked>(stuck.outcome).waiting;
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[1].agent, kTick);
  EXPECT_EQ(waiting[1].op, OpKind::IrqEnter);
  EXPECT_EQ(waiting[1].held_by, std::vector{kWorker});
}

TEST(ToyInterrupts, OnOneCopyAndSeveralLines) {
  ToyBuilder b;
  b.thread("worker", "yield", {.copies = 2})
      .interrupt("first", "worker#1", "")
      .interrupt("second", "worker#1", "");
  const ToyProgram program = built(b);
  ASSERT_EQ(program.agents.size(), 4u);
  EXPECT_EQ(program.agents[2].id, initial(1).interrupt(0));
  EXPECT_EQ(program.agents[3].id, initial(1).interrupt(1));
  EXPECT_EQ(program.agents[3].name, "second");
  EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});
}

TEST(ToyTimers, FiresOnceAfterArm) {
  ToyBuilder b;
  b.shared("n").thread("main", "arm t\nyield").timer("t", "n = n + 1").final_check("n == 1");
  EXPECT_EQ(kinds_of(every_interleaving(b)), Kinds{"exited"});
  const std::vector<std::string> expected = {"0 main timer arm t state=0",
                                             "0 main wake t state=0 other=t",
                                             "1 main yield",
                                             "1 main exit main state=0 other=main",
                                             "2 t timer fire t state=1",
                                             "3 t load n 0",
                                             "4 t store n 1 w"};
  EXPECT_EQ(run(b).lines, expected);
  EXPECT_EQ(built(b).agents[1].id, initial(1));
}

TEST(ToyTimers, CancelWinsOrLoses) {
  ToyBuilder b;
  b.shared("n").thread("main", "arm t; cancel t").timer("t", "n = 1").final_check("n == 0", "fired");
  EXPECT_EQ(kinds_of(every_interleaving(b)), (Kinds{"assertion: final check: fired", "exited"}));
  ToyBuilder never;
  never.shared("n").thread("main", "yield").timer("t", "n = 1").final_check("n == 0");
  EXPECT_EQ(every_interleaving(never), (Outcomes{{"exited", 1}}));
}

TEST(ToyTimers, ArmedAgainItRunsAgain) {
  ToyBuilder b;
  b.shared("n").thread("main", "arm t").timer("t", "n = n + 1; if n < 3 { arm t }").final_check("n == 3");
  EXPECT_EQ(every_interleaving(b), (Outcomes{{"exited", 1}}));
}

}  // namespace
}  // namespace slalom::test
