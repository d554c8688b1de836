// How the executions of a KernelMachine end: no context can run, all flows are done, the check is over, or
// the kernel has died.
#include <algorithm>

#include "vm/control/kernel_machine.h"
#include "vm/cpu/observe/backtrace.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMostRevivals = 20;

}  // namespace

Stop KernelMachine::conclude() {
  Pc& pc = *machine_.pc;
  tap_.flush();
  if (console_.dying()) return last_words();
  for (int tries = 0; tries < 10'000; ++tries) {
    bool revived = false;
    for (unsigned cpu = 0; cpu < contexts_.cpus(); ++cpu)
      if (Liveness& liveness = contexts_.cpu(cpu).liveness; !liveness.live()) {
        liveness.revive();
        revived = true;
      }
    if (revived && ++state_.revivals > kMostRevivals) break;
    // Time also advances for spinning CPUs: their time slice may be over, or they may wait for a timer.
    const bool passed = pc.skip_to_timer();
    course_.add(Course::Leg::Kind::AnyTimer, 0, 0);
    if (!revived && (waits_.for_ever() || !passed)) break;
    contexts_.forget_options();
    if (contexts_.options().empty()) continue;
    const bool goes_on = contexts_.enabled(contexts_.current());
    if (contexts_.kind() == ChoiceKind::Blocked && goes_on) contexts_.set_kind(ChoiceKind::Yielded);
    if (contexts_.kind() == ChoiceKind::Yielded && !goes_on) contexts_.set_kind(ChoiceKind::Blocked);
    return choice_point();
  }
  return finish(waits_.deadlock());
}

// The CPUs take turns as they do by themselves, and interrupts arrive when they are due.
Stop KernelMachine::run_freely(Decision first) {
  Pc& pc = *machine_.pc;
  Pc::Rest rest = pc.rest();
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (first.next == cpu_agent(cpu)) rest.turns.current = cpu;
  rest.turns.quantum = first.forecast.keep;
  const Result<void> set = pc.set_rest(rest);
  CHECK(set.ok(), "a first turn of {}", first.next.path());
  while (true) {
    const PcStop why = pc.run(kSlice);
    console_.read();
    if (why == PcStop::Unknown) return finish(ToolError{pc.trouble()});
    if (why == PcStop::Shutdown) return finish(triple_fault());
    if (protocol_.failure()) return fail();
    if (protocol_.notes_too_much()) return finish(limit_reached(LimitReached::Limit::Notes));
    if (has_died() || why == PcStop::PowerOff || why == PcStop::Reset || why == PcStop::Exit)
      return finish(Exited{});
    if (contexts_.all_flows_done()) return end_of_test();
    if (why == PcStop::Idle || waits_.for_ever()) return finish(waits_.deadlock());
    if (stops()) return finish(Abandoned{"the search is over"});
    if (instructions() >= inputs_.max_steps) return finish(limit_reached());
  }
}

// The CPUs take turns by themselves. No decisions are made, and no accesses are emitted.
PcStop KernelMachine::run_naturally(const std::function<bool()>& goes_on) {
  Pc& pc = *machine_.pc;
  tap_.flush();  // emits what happened under control
  events_.set_natural(true);
  tap_.watches.clear();
  const uint8_t rings = std::exchange(tap_.filter.rings, uint8_t{0});
  apply_filter();
  PcStop why = PcStop::Budget;
  while ((why == PcStop::Budget || why == PcStop::Hypercall) && goes_on()) {
    why = pc.run(kSlice);
    console_.read();
  }
  course_.add(Course::Leg::Kind::Natural, 0, pc.executed());
  tap_.filter.rings = rings;
  apply_filter();
  return why;
}

// The kernel has reported its death, or does not finish the report.
bool KernelMachine::has_died() {
  if (console_.dying() && state_.dying_since == 0) state_.dying_since = instructions();
  return console_.reported() || (console_.dying() && instructions() - state_.dying_since > kLastWords);
}

// A dying kernel may postpone its messages: to an interrupt that it sends itself, to its next tick (printk,
// if it must not wait for the console), or, if its preemption count is corrupted, to the next call of printk.
// So it runs uncontrolled until the console shows where it died.
Stop KernelMachine::last_words() {
  if (!console_.reported() && !console_.traced()) {
    const uint64_t start = machine_.pc->executed();
    const PcStop why = run_naturally(
        [&] { return !console_.reported() && machine_.pc->executed() - start < kLastWords && !stops(); });
    if (why == PcStop::Unknown) return finish(ToolError{machine_.pc->trouble()});
    if (stops()) return finish(Abandoned{"the search is over"});
  }
  // A search for all orders must learn that the rest of the test did not happen.
  return finish(contexts_.scoped() ? Outcome(Faulted{Faulted::Kind::Crash, {}, {}, {}}) : Exited{});
}

// The filter has changed, and the cached translations were made for the old one.
void KernelMachine::apply_filter() {
  for (unsigned cpu = 0; cpu < machine_.pc->cpu_count(); ++cpu) {
    machine_.pc->cpu(cpu).choose_tlb();
    machine_.pc->cpu(cpu).forget_translations();
  }
}

// All flows are done. Runs the guest's check, if there is one.
Stop KernelMachine::end_of_test() {
  const TestInput* test = protocol_.test();
  const std::map<Place, uint64_t>* leftovers =
      test != nullptr && test->leftovers ? test->leftovers() : nullptr;
  if (leftovers != nullptr)
    for (const auto& [place, count] : *leftovers)
      events_.sink().on_event({.step = slalom::Step{instructions()},
                               .agent = contexts_.agent(contexts_.current()),
                               .op = OpKind::Alloc,
                               .pc = place,
                               .state = kMayStay,
                               .value = static_cast<int64_t>(count),
                               .text = {},
                               .recognised = true});
  if (test != nullptr && test->judge)
    if (std::string wrong = test->judge(protocol_.results()); !wrong.empty())
      return finish(Faulted{Faulted::Kind::Assertion, {}, {}, std::move(wrong)});
  // Serial orders are run without the check, which may fail after any of them.
  if (!options_.has_check || inputs_.control == Control::Whole) return finish(Exited{});
  Pc& pc = *machine_.pc;
  const uint64_t start = pc.executed(), start_time = pc.time();
  const PcStop why = run_naturally([&] {
    const uint64_t done = pc.executed() - start;
    const uint64_t waited = pc.time() - start_time - done * kNanosecondsPerInstruction;
    return !protocol_.checked() && !protocol_.failure() && !protocol_.notes_too_much() && !stops() &&
           done < options_.check_limit && waited < longest_wait(options_.check_limit);
  });
  if (why == PcStop::Unknown) return finish(ToolError{pc.trouble()});
  if (stops()) return finish(Abandoned{"the search is over"});
  if (protocol_.failure()) return fail();
  if (protocol_.notes_too_much()) return finish(limit_reached(LimitReached::Limit::Notes));
  if (protocol_.checked() == 0) return finish(Exited{});
  const bool hangs =
      !protocol_.checked() && (why == PcStop::Budget || why == PcStop::Hypercall || why == PcStop::Idle);
  const std::string end = protocol_.checked() ? fmt::format("ended with status {}", *protocol_.checked())
                          : hangs             ? "has not ended"
                                              : "has ended the machine";
  note_part(options_.parts.size(), end);
  if (hangs) return finish(LimitReached{instructions(), {}, LimitReached::Limit::Check});
  return finish(
      Faulted{Faulted::Kind::Assertion,
              {},
              {},
              protocol_.checked() ? check_failed(*protocol_.checked()) : "the check has ended the machine"});
}

// Some kernels reset the machine by a triple fault after a panic. Then the console says more.
Outcome KernelMachine::triple_fault() const {
  if (console_.dying()) return Exited{};
  const Cpu& cpu = *machine_.pc->gave_up();
  std::string faults;
  for (const RaisedFault& raised : cpu.last_faults) {
    faults += fmt::format("{}{}", faults.empty() ? "" : ", then ", exception_name(raised.fault.vector));
    if (raised.fault.vector == kPageFault) faults += fmt::format(" (cr2 {:#x})", raised.cr2);
  }
  return Faulted{Faulted::Kind::Crash, contexts_.agent(cpu.id), Place{cpu.regs.gpr[kRip]},
                 "triple fault: " + faults};
}

LimitReached KernelMachine::limit_reached(LimitReached::Limit limit) const {
  LimitReached reached{instructions(), {}, limit};
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!contexts_.cpu(cpu).done) reached.enabled.push_back(cpu_agent(cpu));
  return reached;
}

// A failure that the agent reports is about a part of the plan, not about the place in the agent's code.
Stop KernelMachine::fail() {
  const uint64_t part = protocol_.failed_part();
  const unsigned cpu = contexts_.current();
  if (part == 0 || part > options_.parts.size()) {
    const bool by_flow = part == 0 && !events_.natural();
    return finish(Faulted{Faulted::Kind::Assertion, by_flow ? contexts_.agent(cpu) : AgentId{},
                          by_flow ? Place{machine_.pc->cpu(cpu).gpr(kRip)} : Place{}, *protocol_.failure()});
  }
  note_part(part, *protocol_.failure());
  return finish(Faulted{Faulted::Kind::Assertion,
                        {},
                        {},
                        fmt::format("{} {}", options_.parts[part - 1].what, *protocol_.failure())});
}

// A note for the report: where the part stands in the user's file. Without the folder, which may be wider
// than a column of the report.
void KernelMachine::note_part(uint64_t part, std::string_view end) {
  if (part == 0 || part > options_.parts.size()) return;
  const PlanPart& one = options_.parts[part - 1];
  const std::string where = one.where.substr(one.where.rfind('/') + 1);
  const unsigned cpu = contexts_.current();
  events_.emit(machine_.pc->executed(), cpu, OpKind::Note, machine_.pc->cpu(cpu).gpr(kRip), {}, 0,
               fmt::format("{}: {} {}", where, one.what, end));
}

Stop KernelMachine::finish(Outcome outcome) {
  open_ = false;
  tap_.flush();
  if (Course* course = course_.course()) {
    course->end = machine_.pc->executed();
    course->end_hash = machine_.pc->state_hash();
  }
  console_.finish_line();
  events_.sink().on_end(outcome);
  std::vector<Place> found = events_.points();
  remove_places_in(options_.no_choices, found);
  std::ranges::set_difference(found, inputs_.policy.places, std::back_inserter(knowledge_.places));
  return outcome;
}

}  // namespace slalom::vm
