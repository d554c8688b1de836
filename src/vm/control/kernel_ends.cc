// How the executions of a KernelMachine end: no context can run, all flows are done, the check is over, or
// the kernel has died.
#include <algorithm>
#include <array>

#include "base/little_endian.h"
#include "vm/control/kernel_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/cpu/memory/record.h"
#include "vm/cpu/observe/backtrace.h"

namespace slalom::vm {
namespace {

// After this much virtual time (in nanoseconds) with idle CPUs only, no CPU will wake up, unless a flow waits
// for a timer.
constexpr uint64_t kForever = 3'000'000'000;
constexpr uint64_t kMostRevivals = 20;

}  // namespace

Stop KernelMachine::conclude() {
  Pc& pc = *machine_.pc;
  tap_.flush();
  if (state_.dying) return last_words();
  for (int tries = 0; tries < 10'000; ++tries) {
    bool revived = false;
    for (CpuState& state : state_.cpus)
      if (!state.liveness.live()) {
        state.liveness.revive();
        revived = true;
      }
    if (revived && ++state_.revivals > kMostRevivals) break;
    // Time also advances for spinning CPUs: their time slice may be over, or they may wait for a timer.
    const bool passed = pc.skip_to_timer();
    note(Course::Leg::Kind::AnyTimer, 0, 0);
    if (!revived && (waits_for_ever() || !passed)) break;
    options_known_ = false;
    if (options().empty()) continue;
    if (state_.kind == ChoiceKind::Blocked && enabled(state_.current)) state_.kind = ChoiceKind::Yielded;
    if (state_.kind == ChoiceKind::Yielded && !enabled(state_.current)) state_.kind = ChoiceKind::Blocked;
    return choice_point();
  }
  return finish(deadlock());
}

bool KernelMachine::waits_for_ever() const {
  if (machine_.pc->time() - state_.progress <= kForever) return false;
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!state_.cpus[cpu].done && sleeps_for_a_time(cpu)) return false;
  return true;
}

// A flow that waits for a timer has the timer on its stack, with the function to call when it expires.
bool KernelMachine::sleeps_for_a_time(unsigned cpu) const {
  const CpuState& state = state_.cpus[cpu];
  if (state.flow_sleeps == 0) return false;
  const Cpu& here = machine_.pc->cpu(cpu);
  for (uint64_t at = state.flow_sleeps & ~uint64_t{7}; at < state.flow_stack + kKernelStack; at += 8) {
    const std::optional<uint64_t> value = read_word(here, at);
    if (!value) break;
    if (!options_.guest.code.has(*value)) continue;
    const std::string place = names_->place(Place{*value});
    if (std::ranges::find(options_.guest.timed_waits, place) != options_.guest.timed_waits.end()) return true;
  }
  return false;
}

Outcome KernelMachine::deadlock() const {
  Deadlocked deadlock;
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!state_.cpus[cpu].done) {
      Deadlocked::Waiting waiting{cpu_agent(cpu), OpKind::None, {}, waits_at(cpu), {}};
      if (const std::optional<LockWait> wait = waits_for_lock(cpu)) {
        waiting.object = ObjectId{wait->lock};
        waiting.pc = wait->caller;
        for (const State::HeldLock& held : state_.locks)
          if (held.lock == wait->lock) waiting.held_by.push_back(held.by);
        if (waiting.held_by.empty())
          if (const std::optional<unsigned> releasing = releases_lock(wait->lock))
            waiting.held_by = {cpu_agent(*releasing)};
      }
      deadlock.waiting.push_back(std::move(waiting));
    }
  return deadlock;
}

Outcome KernelMachine::run_freely(const FreeRun& how, uint64_t max_steps, EventSink& sink) {
  inputs_ = {.policy = {.where = ChoicePolicy::Where::Nowhere}, .max_steps = max_steps, .at_end = true};
  places_set_ = false;
  begin_anew(sink);
  Pc& pc = *machine_.pc;
  Pc::Rest rest = pc.rest();
  rest.turns.current = how.first;
  rest.turns.quantum = how.instructions;
  const Result<void> set = pc.set_rest(rest);
  CHECK(set.ok(), "a turn of CPU {}", how.first);
  const auto all_done = [&] {
    return std::ranges::all_of(state_.cpus.begin(), state_.cpus.begin() + options_.flows,
                               [](const CpuState& one) { return one.done; });
  };
  Stop stop = Outcome(Exited{});
  while (true) {
    const PcStop why = pc.run(kSlice);
    read_console();
    if (state_.dying && state_.dying_since == 0) state_.dying_since = instructions();
    if (why == PcStop::Unknown)
      stop = finish(ToolError{pc.trouble()});
    else if (why == PcStop::Shutdown)
      stop = finish(triple_fault());
    else if (state_.failure)
      stop = fail();
    else if (notes_too_much())
      stop = finish(limit_reached(LimitReached::Limit::Notes));
    else if (state_.reported || (state_.dying && instructions() - state_.dying_since > kLastWords) ||
             why == PcStop::PowerOff || why == PcStop::Reset || why == PcStop::Exit)
      stop = finish(Exited{});
    else if (all_done())
      stop = end_of_test();
    else if (why == PcStop::Idle || waits_for_ever())
      stop = finish(deadlock());
    else if (instructions() >= max_steps)
      stop = finish(limit_reached());
    else
      continue;
    return std::get<Outcome>(std::move(stop));
  }
}

// The CPUs take turns by themselves. No decisions are made, and no accesses are emitted.
PcStop KernelMachine::run_naturally(const std::function<bool()>& goes_on) {
  Pc& pc = *machine_.pc;
  tap_.flush();  // emits what happened under control
  natural_ = true;
  tap_.watches.clear();
  const uint8_t rings = std::exchange(tap_.filter.rings, uint8_t{0});
  apply_filter();
  PcStop why = PcStop::Budget;
  while ((why == PcStop::Budget || why == PcStop::Hypercall) && goes_on()) {
    why = pc.run(kSlice);
    read_console();
  }
  note(Course::Leg::Kind::Natural, 0, pc.executed());
  tap_.filter.rings = rings;
  apply_filter();
  return why;
}

// A dying kernel may postpone its messages: to an interrupt that it sends itself, to its next tick (printk,
// if it must not wait for the console), or, if its preemption count is corrupted, to the next call of printk.
// So it runs uncontrolled until the console shows where it died.
Stop KernelMachine::last_words() {
  if (!state_.reported && !state_.traced) {
    const uint64_t start = machine_.pc->executed();
    const PcStop why = run_naturally(
        [&] { return !state_.reported && machine_.pc->executed() - start < kLastWords && !stops(); });
    if (why == PcStop::Unknown) return finish(ToolError{machine_.pc->trouble()});
    if (stops()) return finish(Abandoned{"the search is over"});
  }
  // A search for all orders must learn that the rest of the test did not happen.
  return finish(scoped() ? Outcome(Faulted{Faulted::Kind::Crash, {}, {}, {}}) : Exited{});
}

// Returns the lock of the innermost call on the flow's waiting stack that takes a lock and has not returned.
std::optional<KernelMachine::LockWait> KernelMachine::waits_for_lock(unsigned cpu) const {
  if (model_ == nullptr) return std::nullopt;
  const CpuState& state = state_.cpus[cpu];
  const uint64_t pointer = machine_.pc->cpu(cpu).regs.gpr[kRsp];
  const uint64_t stack = pointer & ~(kKernelStack - 1);
  const bool here = stack == state.flow_stack || !state.interrupts.empty();
  const uint64_t top = here ? pointer : state.flow_sleeps;
  const uint64_t end = (here ? stack : state.flow_stack) + kKernelStack;
  const FunctionWatch::Open& open = tap_.functions.open();
  for (auto at = open.lower_bound(top); at != open.end() && at->first < end; ++at)
    for (const FunctionWatch::Frame& frame : at->second) {
      const std::optional<GuestModel::LockCall> call = model_->lock_call(frame);
      if (call && call->acquires) return LockWait{call->lock, Place{frame.return_address}};
    }
  return std::nullopt;
}

// Returns the CPU that has begun to release the lock and was interrupted before it could. It still holds the
// lock.
std::optional<unsigned> KernelMachine::releases_lock(uint64_t lock) const {
  for (const auto& [stack, frames] : tap_.functions.open())
    for (const FunctionWatch::Frame& frame : frames) {
      const std::optional<GuestModel::LockCall> call = model_->lock_call(frame);
      if (!call || call->acquires || call->lock != lock) continue;
      for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
        if ((stack & ~(kKernelStack - 1)) == state_.cpus[cpu].flow_stack) return cpu;
    }
  return std::nullopt;
}

// A place without a name is taken for one in such a function.
bool KernelMachine::implements_waiting(Place place) const {
  const std::string name = names_->place(place);
  return name.starts_with("0x") ||
         std::ranges::any_of(options_.guest.waiting_functions,
                             [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Returns a place in the innermost function on the flow's stack that does not itself implement waiting. The
// flow sleeps, or an interrupt that has interrupted it does not end. Return addresses identify the functions,
// since nothing else is known of the stack.
Place KernelMachine::waits_at(unsigned cpu) const {
  const CpuState& state = state_.cpus[cpu];
  const Cpu& here = machine_.pc->cpu(cpu);
  Place found{here.regs.gpr[kRip]};
  const uint64_t stack = here.regs.gpr[kRsp] & ~(kKernelStack - 1);
  const bool spins = stack == state.flow_stack || !state.interrupts.empty();
  if (state.flow_stack == 0 || (spins && !implements_waiting(found))) return found;
  if (!spins && state.flow_sleeps == 0) return found;
  const uint64_t top = spins ? here.regs.gpr[kRsp] : state.flow_sleeps;
  const uint64_t end = (spins ? stack : state.flow_stack) + kKernelStack;
  for (uint64_t at = top & ~uint64_t{7}; at < end; at += 8) {
    const std::optional<uint64_t> value = read_word(here, at);
    if (!value) break;
    std::array<uint8_t, 1> before{};  // the opcode of a direct call, five bytes before the return address
    if (!options_.guest.code.has(*value) || !read_all(here, *value - 5, before) || before[0] != 0xe8)
      continue;
    found = Place{*value};
    if (!implements_waiting(found)) return found;
  }
  return found;
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
  const std::map<Place, uint64_t>* leftovers =
      options_.serial_leftovers ? options_.serial_leftovers() : nullptr;
  if (leftovers != nullptr)
    for (const auto& [place, count] : *leftovers)
      sink_->on_event({.step = slalom::Step{instructions()},
                       .agent = agent(state_.current),
                       .op = OpKind::Alloc,
                       .pc = place,
                       .state = kMayStay,
                       .value = static_cast<int64_t>(count),
                       .text = {},
                       .recognised = true});
  if (options_.judge)
    if (std::string wrong = options_.judge(state_.results); !wrong.empty())
      return finish(Faulted{Faulted::Kind::Assertion, {}, {}, std::move(wrong)});
  // SerialOrders collects the results of serial orders without the check, which may fail after any of them.
  if (!options_.has_check || !explores_) return finish(Exited{});
  Pc& pc = *machine_.pc;
  const uint64_t start = pc.executed(), start_time = pc.time();
  const PcStop why = run_naturally([&] {
    const uint64_t done = pc.executed() - start;
    const uint64_t waited = pc.time() - start_time - done * kNanosecondsPerInstruction;
    return !state_.checked && !state_.failure && !notes_too_much() && !stops() &&
           done < options_.check_limit && waited < longest_wait(options_.check_limit);
  });
  if (why == PcStop::Unknown) return finish(ToolError{pc.trouble()});
  if (stops()) return finish(Abandoned{"the search is over"});
  if (state_.failure) return fail();
  if (notes_too_much()) return finish(limit_reached(LimitReached::Limit::Notes));
  if (state_.checked == 0) return finish(Exited{});
  const bool hangs =
      !state_.checked && (why == PcStop::Budget || why == PcStop::Hypercall || why == PcStop::Idle);
  const std::string end = state_.checked ? fmt::format("ended with status {}", *state_.checked)
                          : hangs        ? "has not ended"
                                         : "has ended the machine";
  note_part(options_.parts.size(), end);
  if (hangs) return finish(LimitReached{instructions(), {}, LimitReached::Limit::Check});
  return finish(Faulted{Faulted::Kind::Assertion,
                        {},
                        {},
                        state_.checked ? check_failed(*state_.checked) : "the check has ended the machine"});
}

// Some kernels reset the machine by a triple fault after a panic. Then the console says more.
Outcome KernelMachine::triple_fault() const {
  if (state_.dying) return Exited{};
  const Cpu& cpu = *machine_.pc->gave_up();
  std::string faults;
  for (const RaisedFault& raised : cpu.last_faults) {
    faults += fmt::format("{}{}", faults.empty() ? "" : ", then ", exception_name(raised.fault.vector));
    if (raised.fault.vector == kPageFault) faults += fmt::format(" (cr2 {:#x})", raised.cr2);
  }
  return Faulted{Faulted::Kind::Crash, agent(cpu.id), Place{cpu.regs.gpr[kRip]}, "triple fault: " + faults};
}

LimitReached KernelMachine::limit_reached(LimitReached::Limit limit) const {
  LimitReached reached{instructions(), {}, limit};
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!state_.cpus[cpu].done) reached.enabled.push_back(cpu_agent(cpu));
  return reached;
}

// A failure that the agent reports is about a part of the plan, not about the place in the agent's code.
Stop KernelMachine::fail() {
  const uint64_t part = state_.failed_part;
  const unsigned cpu = state_.current;
  if (part == 0 || part > options_.parts.size()) {
    const bool by_flow = part == 0 && !natural_;
    return finish(Faulted{Faulted::Kind::Assertion, by_flow ? agent(cpu) : AgentId{},
                          by_flow ? Place{machine_.pc->cpu(cpu).gpr(kRip)} : Place{}, *state_.failure});
  }
  note_part(part, *state_.failure);
  return finish(Faulted{Faulted::Kind::Assertion,
                        {},
                        {},
                        fmt::format("{} {}", options_.parts[part - 1].what, *state_.failure)});
}

// A note for the report: where the part stands in the user's file. Without the folder, which may be wider
// than a column of the report.
void KernelMachine::note_part(uint64_t part, std::string_view end) {
  if (part == 0 || part > options_.parts.size()) return;
  const PlanPart& one = options_.parts[part - 1];
  const std::string where = one.where.substr(one.where.rfind('/') + 1);
  emit(machine_.pc->executed(), state_.current, OpKind::Note, machine_.pc->cpu(state_.current).gpr(kRip), {},
       0, fmt::format("{}: {} {}", where, one.what, end));
}

Stop KernelMachine::finish(Outcome outcome) {
  open_ = false;
  tap_.flush();
  if (course_ != nullptr) {
    course_->end = machine_.pc->executed();
    course_->end_hash = machine_.pc->state_hash();
  }
  if (!state_.line.empty()) console_line(std::exchange(state_.line, {}));
  sink_->on_end(outcome);
  std::vector<Place> found = communication_.points();
  remove_places_in(options_.no_choices, found);
  std::ranges::set_difference(found, inputs_.policy.places, std::back_inserter(feedback_.places));
  return outcome;
}

}  // namespace slalom::vm
