// What a kernel's report shows and leaves out, compared with counts and a second reading of the log.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "report/kernels/kernel_calls.h"
#include "report/kernels/kernel_relevance.h"
#include "report/kernels/kernel_timeline.h"
#include "report/text.h"
#include "report/trace_text.h"
#include "unit/report/scene.h"

namespace slalom::test {
namespace {

Timeline timeline(const Scene& scene, TimelineDetail detail) {
  const KernelTrace trace = read_kernel_trace(scene.log);
  return make_kernel_timeline(trace, kernel_switches(trace, scene.finding.schedule), scene.finding,
                              scene.log.outcome(), scene.names, detail, glyphs(true));
}

bool shows(const Timeline& timeline, const std::string& text, const std::string& note) {
  for (const TimelineRow& row : timeline.rows)
    if (row.text == text && row.note.starts_with(note)) return true;
  return false;
}

// Two flows with many accesses each, in three runs, all of them to memory that both use.
Scene busy() {
  Scene s;
  s.calls("a", "read(0)");
  for (int run = 0; run < 3; ++run)
    for (int i = 0; i < 50; ++i)
      s.writes(run % 2 == 0 ? "a" : "b", fmt::format("run_{}+{:#x}", run, i), fmt::format("x[{}]", i),
               run * 100 + i);
  s.end(Exited{});
  return s;
}

// A call or return to a function or place. `stack` is the stack pointer after it.
void transfer(Scene& s, OpKind op, const std::string& who, const std::string& to, uint64_t stack) {
  Access access{};
  access.pc_bits = s.at("caller+0x5").raw;
  access.op_bits = static_cast<uint8_t>(op);
  access.address_bits = s.at(to).raw;
  access.value = stack;
  s.log.on_accesses({&access, 1}, {s.agent(who), 0, Step{s.steps()}});
}

// The writer is stopped in store_it, deep in calls. Then the reader runs.
Scene deep() {
  constexpr uint64_t kWriter = 0x17f00, kReader = 0x27f00;
  Scene s;
  s.calls("writer", "write(fd)");
  transfer(s, OpKind::Call, "writer", "vfs_write", kWriter);
  transfer(s, OpKind::Call, "writer", "check", kWriter - 16);
  transfer(s, OpKind::Return, "writer", "vfs_write+0x9", kWriter - 8);
  transfer(s, OpKind::Call, "writer", "m:write", kWriter - 16);
  transfer(s, OpKind::Call, "writer", "m:store_it", kWriter - 32);
  s.writes("writer", "m:store_it+0x4", "half", 1);
  s.calls("reader", "read(fd)");
  transfer(s, OpKind::Call, "reader", "m:read", kReader);
  const Step read{s.steps()};
  s.reads("reader", "m:read+0x8", "half", 1);
  s.tells(OpKind::SyscallExit, "reader", "0x402a0c", 0);
  transfer(s, OpKind::Return, "writer", "m:write+0x9", kWriter - 24);
  transfer(s, OpKind::Call, "writer", "after", kWriter - 32);
  s.tells(OpKind::SyscallExit, "writer", "0x402a0c", 0);
  s.end(Exited{});
  s.finding.verdict.evidence = {{read, s.agent("reader"), s.at("m:read+0x8"), "load of half"}};
  return s;
}

std::vector<std::string> calls(const Scene& scene, TimelineDetail detail) {
  const KernelTrace trace = read_kernel_trace(scene.log);
  std::vector<std::string> lines;
  for (const CallLine& line :
       kernel_calls(trace, kernel_switches(trace, scene.finding.schedule), scene.finding, scene.log.outcome(),
                    scene.names, detail, glyphs(true)))
    lines.push_back(std::string(line.indent, '.') + (line.evidence ? "> " : "") + line.text);
  return lines;
}

TEST(KernelReport, CallsAreNoAccesses) {
  Scene s = deep();
  const TraceLog::Batch& first = s.log.batches().front();
  EXPECT_EQ(access_text(s.log.accesses()[first.first], nullptr, s.names), "calls vfs_write");
  uint64_t shown = 0, folded = 0;
  for (const TimelineRow& row : timeline(s, TimelineDetail::Essential).rows) {
    shown += row.note.starts_with("half: ");
    if (row.text.starts_with("... ")) folded += std::stoul(row.text.substr(4));
  }
  EXPECT_EQ(shown, 2u);
  EXPECT_EQ(folded, 0u);
}

TEST(KernelReport, CallsLeadToSwitchesAndEvidence) {
  EXPECT_EQ(calls(deep(), TimelineDetail::Essential),
            (std::vector<std::string>{"writer: write(fd)", ".vfs_write -> m:write -> m:store_it",
                                      "..-> reader after m:store_it+0x4", "reader: read(fd)", ".m:read",
                                      "..> m:read+0x8: load of half"}));
  EXPECT_EQ(calls(deep(), TimelineDetail::Everything),
            (std::vector<std::string>{"writer: write(fd)", ".vfs_write", "..check", "..m:write",
                                      "...m:store_it", "....-> reader after m:store_it+0x4", "...after",
                                      "reader: read(fd)", ".m:read", "..> m:read+0x8: load of half"}));
  EXPECT_TRUE(calls(torn_read(), TimelineDetail::Essential).empty());  // has no recorded calls
}

// Two agents that wait for each other for ever: their turns are shown once.
TEST(KernelReport, TurnsOfWaitingAreOneRow) {
  Scene s;
  s.calls("a", "one()").writes("a", "f+0x1", "x", 1);
  s.calls("b", "two()").writes("b", "g+0x1", "x", 2);
  constexpr int kTurns = 40;
  for (int i = 0; i < kTurns; ++i)
    s.reads(i % 2 == 0 ? "a" : "b", i % 2 == 0 ? "spin+0x1" : "wait+0x1", "lock", 1);
  s.end(Deadlocked{});
  const KernelTrace trace = read_kernel_trace(s.log);
  Interleaving switches = kernel_switches(trace, s.finding.schedule);
  ASSERT_EQ(switches.switches.size(), 1u + kTurns);
  for (size_t i = 1; i < switches.switches.size(); ++i) switches.switches[i].leaving = Leaving::Yielded;
  const Timeline made = make_kernel_timeline(trace, switches, s.finding, s.log.outcome(), s.names,
                                             TimelineDetail::Essential, glyphs(true));
  const auto whole = std::ranges::find(made.rows, TimelineRow::What::Whole, &TimelineRow::what);
  ASSERT_NE(whole, made.rows.end());
  // The first turn shows where the CPU goes on.
  EXPECT_EQ(whole->text, "... 39 turns of waiting: a in spin, b in wait");
  EXPECT_LT(made.rows.size(), 12u);
}

// System calls that have nothing to do with a race have one row each.
TEST(KernelReport, CallsWithoutEvidenceOrSwitchesHaveOneRow) {
  for (const BugKind kind : {BugKind::DataRace, BugKind::Assertion}) {
    Scene s;
    s.calls("a", "before()").writes("a", "f+0x1", "x", 1).tells(OpKind::SyscallExit, "a", "0x402a0c", 0);
    s.calls("a", "racing()");
    const Step first{s.steps()};
    s.writes("a", "f+0x8", "y", 1);
    s.calls("b", "beside()").reads("b", "g+0x1", "x", 1).reads("b", "g+0x8", "y", 1);
    s.end(Exited{});
    s.finding.verdict.kind = kind;
    s.finding.verdict.evidence = {{first, s.agent("a"), s.at("f+0x8"), "store to y"}};
    const Timeline made = timeline(s, TimelineDetail::Essential);
    EXPECT_EQ(shows(made, "f+0x1", "x: wrote 1"), kind == BugKind::Assertion);
    EXPECT_TRUE(shows(made, "f+0x8", "y: wrote 1"));
    EXPECT_EQ(shows(made, "before()", "= 0 (1 access)"), kind == BugKind::DataRace);
  }
}

TEST(KernelReport, IsMadeOfTracesWithSystemCallsOnly) {
  EXPECT_TRUE(is_kernel_trace(torn_read().log));
  EXPECT_FALSE(is_kernel_trace(scenes().at("interrupt")().log));
}

TEST(KernelReport, ShowsTwelveOfARunAndCountsTheRest) {
  const Timeline essential = timeline(busy(), TimelineDetail::Essential);
  std::map<std::string, int> shown;  // by run
  uint64_t folded = 0, rows = 0;
  for (const TimelineRow& row : essential.rows) {
    if (row.what == TimelineRow::What::Cell && row.text.starts_with("run_")) {
      ++shown[row.text.substr(0, 5)];
      ++rows;
    }
    if (row.text.starts_with("... ")) folded += std::stoul(row.text.substr(4));
  }
  // The last operation before a switch, and the first one after it, are among the nearest.
  EXPECT_EQ(shown, (std::map<std::string, int>{{"run_0", 12}, {"run_1", 12}, {"run_2", 12}}));
  EXPECT_EQ(rows + folded, 150u);
  EXPECT_TRUE(shows(essential, "run_0+0x31", "x[49]: wrote 49"));
  EXPECT_FALSE(shows(essential, "run_0+0x0", ""));
  EXPECT_TRUE(shows(essential, "run_1+0x0", "x[0]: wrote 100"));
  EXPECT_TRUE(shows(essential, "run_1+0x31", "x[49]: wrote 149"));
  EXPECT_TRUE(shows(essential, "run_2+0x0", "x[0]: wrote 200"));
  EXPECT_FALSE(shows(essential, "run_2+0x31", ""));

  size_t cells = 0;
  for (const TimelineRow& row : timeline(busy(), TimelineDetail::Everything).rows)
    cells += row.what == TimelineRow::What::Cell && row.text.starts_with("run_");
  EXPECT_EQ(cells, 150u);
}

TEST(KernelReport, LeavesOutLocksCountersAndWhatRunsBeneath) {
  Scene s;
  s.calls("a", "read(0)").calls("b", "write(0)");
  for (const char* who : {"a", "b", "a", "b"}) {
    s.touch(OpKind::CompareExchange, who, "f+0x1", "lock", 0, true).writes(who, "f+0x2", "lock", 0);
    s.reads(who, "update_curr+0x8", "clock", 5).writes(who, "update_curr+0x9", "clock", 6);
    s.reads(who, "f+0x3", "constant", 1).writes(who, "f+0x4", std::string(who) + "'s own", 1);
    for (int i = 0; i < 9; ++i) s.writes(who, fmt::format("user_{}+0x1", i), "count of everybody", 1);
    s.writes(who, "f+0x5", "data", 1);
    s.touch(OpKind::ReadModifyWrite, who, "module:g+0x6", "flags", 1, true);
  }
  s.end(Exited{});
  const KernelTrace trace = read_kernel_trace(s.log);
  const std::vector<Relevance> relevance = find_relevance(trace, s.names);
  std::map<std::string, int> relevant;
  for (size_t i = 0; i < relevance.size(); ++i)
    if (relevance[i] != Relevance::None) ++relevant[s.names.object(trace.operations[i].access->address())];
  EXPECT_EQ(relevant, (std::map<std::string, int>{{"data", 4}, {"flags", 4}}));
}

TEST(KernelReport, ComparesMemoryByItsPhysicalAddress) {
  Scene s;
  s.calls("a", "read(0)").calls("b", "write(0)");
  for (const uint64_t physical : {0x5000, 0x6000, 0x5000}) {
    Access access{};
    access.pc_bits = s.at("f+0x1").raw;
    access.op_bits = static_cast<uint8_t>(OpKind::Store);
    access.address_bits = s.object("buffer").raw;  // the same virtual address in all processes
    access.physical = physical & 0xffffffffff;
    access.size = 8;
    s.log.on_accesses({&access, 1}, {s.agent(physical == 0x5000 ? "a" : "b"), 0, Step{s.steps()}});
  }
  s.end(Exited{});
  for (const Relevance relevance : find_relevance(read_kernel_trace(s.log), s.names))
    EXPECT_EQ(relevance, Relevance::None);
}

TEST(KernelReport, NeighboursInMemoryAreNotShared) {
  Scene s;
  s.calls("a", "read(0)").calls("b", "write(0)");
  for (const uint64_t field : {0, 2, 0}) {
    Access access{};
    access.pc_bits = s.at("f+0x1").raw;
    access.op_bits = static_cast<uint8_t>(OpKind::Store);
    access.address_bits = access.physical = 0x5000 + (field & 7);
    access.size = 2;
    s.log.on_accesses({&access, 1}, {s.agent(field == 0 ? "a" : "b"), 0, Step{s.steps()}});
  }
  s.end(Exited{});
  for (const Relevance relevance : find_relevance(read_kernel_trace(s.log), s.names))
    EXPECT_EQ(relevance, Relevance::None);
}

TEST(KernelReport, ACpuGoesOnAfterAnInterruptWithoutASwitch) {
  Scene s;
  s.agent("a");
  s.name_agent(s.agent("b").interrupt(0x1c), "timer");
  s.calls("a", "read(0)").reads("timer", "f+0x1", "x", 1).calls("b", "write(0)");
  s.end(Exited{});
  auto& switches = s.finding.schedule.switches;
  ASSERT_EQ(switches.size(), 3u);
  switches.pop_back();
  const Interleaving all = kernel_switches(read_kernel_trace(s.log), s.finding.schedule);
  ASSERT_EQ(all.switches.size(), 1u);
  EXPECT_EQ(all.switches[0].at, 1u);
  EXPECT_EQ(all.switches[0].from_ops, 1u);
  switches.pop_back();  // now nothing explains how the interrupt came
  EXPECT_TRUE(kernel_switches(read_kernel_trace(s.log), s.finding.schedule).switches.empty());
}

// How CPUs ask each other for calls: of these accesses, only the one that passes the function is shown.
TEST(KernelReport, HowACallGetsToAnotherCpuIsNotShown) {
  for (const bool is_cross_call : {true, false}) {
    const std::string sender = is_cross_call ? "smp_call_function_many_cond" : "queue_it";
    const std::string receiver = is_cross_call ? "__flush_smp_call_function_queue" : "take_it";
    Scene s;
    s.name_agent(s.agent("a").interrupt(0x2b), "ipi");
    s.calls("b", "ioctl(fd)");
    s.writes("b", sender + "+0x1", "csd.flags", 17);
    s.writes("b", sender + "+0x2", "csd.func", static_cast<int64_t>(s.at("m:called").raw));
    s.writes("b", "llist_add_batch+0x3", "csd.next", 0);
    s.writes("b", "m:ask+0x9", "asked", 1);  // the last operation before a switch is always shown
    s.reads("ipi", "llist_reverse_order+0x4", "csd.next", 0);
    s.reads("ipi", receiver + "+0x4", "csd.next", 0);
    s.reads("ipi", receiver + "+0x5", "csd.flags", 17);
    s.reads("ipi", receiver + "+0x6", "csd.func", static_cast<int64_t>(s.at("m:called").raw));
    s.writes("ipi", "m:called+0x7", "count", 1);
    s.end(Exited{});
    const Timeline short_one = timeline(s, TimelineDetail::Essential),
                   full = timeline(s, TimelineDetail::Everything);
    EXPECT_TRUE(shows(short_one, sender + "+0x2", "csd.func: wrote"));
    for (const auto& [place, note] :
         {std::pair(sender + "+0x1", "csd.flags"), std::pair(receiver + "+0x5", "csd.flags"),
          std::pair(receiver + "+0x6", "csd.func"),
          std::pair(std::string("llist_add_batch+0x3"), "csd.next")}) {
      EXPECT_EQ(shows(short_one, place, note), !is_cross_call) << place;
      EXPECT_TRUE(shows(full, place, note)) << place;
    }
  }
}

// Nothing is lost: the rows are counted, and shown in full on request.
TEST(KernelReport, OrdersOfWhatACpuKeepsOfItselfAreFolded) {
  Scene s;
  s.calls("a", "read(0)").writes("a", "f+0x1", "x", 1).writes("a", "f+0x2", "__preempt_count[cpu0]", 1);
  s.calls("b", "write(0)").reads("b", "g+0x1", "x", 1).reads("b", "g+0x2", "__preempt_count[cpu0]", 1);
  s.end(Exited{});
  s.finding.target = make_target("kernel", "folded", "");
  for (const int i : {1, 2})
    s.finding.constraints.push_back({{s.agent("a"), 0, s.at(fmt::format("f+{:#x}", i)), ""},
                                     {s.agent("b"), 0, s.at(fmt::format("g+{:#x}", i)), ""}});
  const std::string essential = text_report(s.finding, s.log, s.names, s.options);
  EXPECT_NE(essential.find("a's store to x at f+0x1"), std::string::npos) << essential;
  EXPECT_EQ(essential.find("a's store to __preempt_count"), std::string::npos) << essential;
  EXPECT_NE(essential.find("and 1 more, of what a CPU keeps of itself (--full shows it)"), std::string::npos)
      << essential;
  s.options.detail = TextOptions::Detail::Everything;
  const std::string full = text_report(s.finding, s.log, s.names, s.options);
  EXPECT_NE(full.find("a's store to __preempt_count[cpu0] at f+0x2"), std::string::npos) << full;
  EXPECT_EQ(full.find("and 1 more"), std::string::npos) << full;
}

TEST(KernelReport, SaysOrdersInWordsAndMeansThePairThatMeets) {
  const Scene scene = torn_read();
  const KernelTrace trace = read_kernel_trace(scene.log);
  using Words = KernelOrder;
  EXPECT_EQ(kernel_order(scene.finding.constraints.at(0), trace, scene.names),
            (Words{"writer's load of folio.flags at shmem_write_end+0x54",
                   "reader at 0x402a0a, outside the kernel"}));
  EXPECT_EQ(kernel_order(scene.finding.constraints.at(1), trace, scene.names),
            (Words{"reader's load of page 2 at copy_user_generic_string+0x2c",
                   "writer's store to page 2 at copy_user_generic_string+0x2c"}));
}

TEST(KernelReport, TakesTheTitleThePlaceAndEightFramesFromTheConsole) {
  const std::string summary = console_summary(kernel_oops().finding.verdict.detail);
  std::string expected =
      "BUG: kernel NULL pointer dereference, address: 0000000000000008\nOops: 0000 [#1] PREEMPT SMP NOPTI\n"
      "RIP: 0010:pipe_open+0x2f/0x70 [slalom_pipe]\nCall Trace:";
  for (int i = 0; i < 8; ++i) expected += fmt::format("\n  caller_{}+0x10/0x20", i);
  EXPECT_EQ(summary, expected);
  EXPECT_EQ(console_summary("one sentence"), "one sentence");
}

TEST(KernelReport, TraceHasALineForEachAccessAndEvent) {
  for (Scene (*make)() : {torn_read, kernel_oops, busy}) {
    const Scene scene = make();
    std::ostringstream out;
    print_trace(out, scene.log, scene.names);
    const std::string text = out.str();
    EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')),
              scene.log.accesses().size() + scene.log.events().size() + 1);
  }
}

}  // namespace
}  // namespace slalom::test
