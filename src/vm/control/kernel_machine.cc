#include "vm/control/kernel_machine.h"

#include <algorithm>

#include "base/hash.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {

KernelMachine::KernelMachine(Booted machine, KernelMachineOptions options, std::shared_ptr<const Names> names)
    : machine_(std::move(machine)), options_(std::move(options)), names_(std::move(names)) {
  Pc& pc = *machine_.pc;
  CHECK(options_.flows >= 1 && options_.flows <= pc.cpu_count(), "{} flows on {} CPUs", options_.flows,
        pc.cpu_count());
  recognise(Facilities::all());
  pc.set_hypercalls(&protocol_);
  pc.attach(&tap_);
  pc.ram().make_base();
  begin_ = pc.take();
  for (unsigned i = 0; i < pc.cpu_count(); ++i) begin_retired_.push_back(pc.cpu(i).regs.retired);
}

KernelMachine::~KernelMachine() {
  machine_.pc->attach(nullptr);
  machine_.pc->set_hypercalls(nullptr);
}

Result<void> KernelMachine::reset(const Inputs& inputs) {
  if (inputs.policy.where != inputs_.policy.where || inputs.policy.places != inputs_.policy.places)
    places_set_ = false;
  watched_.clear();
  for (const ChoicePolicy::WatchedAccess& one : inputs.policy.accesses)
    watched_.push_back({.first = one.first,
                        .last = one.last,
                        .reads = one.reads,
                        .writes = one.writes,
                        .pc = one.place.raw,
                        .unless_place = true});
  inputs_ = inputs;
  contexts_.set_control(inputs.control);
  open_ = false;
  return {};
}

Stop KernelMachine::start(EventSink& sink) {
  Pc& pc = *machine_.pc;
  events_.drop_all();
  tap_.flush();  // what an abandoned execution has left
  tap_.watches.clear();
  pc.restore(begin_);
  if (!places_set_) {
    Places places;
    using Where = ChoicePolicy::Where;
    places.where = inputs_.policy.where == Where::Everywhere ? Places::Where::Memory
                   : inputs_.policy.where == Where::Sync     ? Places::Where::Locked
                                                             : Places::Where::Listed;
    Physical physical;
    for (const Place place : inputs_.policy.places)
      if (translate_quietly(pc.cpu(0), place.raw, physical)) places.listed.insert(physical);
    pc.set_places(std::move(places));
    places_set_ = true;
  }
  // Executions with a scope get everything at once: communication inside the scope says nothing about memory
  // outside, so the journal could mark nothing.
  events_.begin(sink, inputs_.reporting.at_end && !contexts_.scoped());
  course_.begin(begin_executed_);
  state_ = State{};
  protocol_.begin(inputs_.test != nullptr ? inputs_.test : options_.test);
  console_.begin();
  guest_.begin();
  contexts_.begin();
  knowledge_.places.clear();
  passed_ = 0;
  return choice(ChoiceKind::Start);
}

Stop KernelMachine::resume(Decision decision) {
  if (!open_) return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  open_ = false;
  passed_ = 0;
  stops_at_conflicts_ = false;
  if (inputs_.control == Control::None) return run_freely(decision);
  uint32_t keep = decision.forecast.keep;
  const bool until_conflict = decision.forecast.until_conflict;
  if (protocol_.arity() != 0) {
    if (decision.value >= protocol_.arity())
      return finish(ToolError{fmt::format("value {} of {}", decision.value, protocol_.arity())});
    protocol_.choose(decision.value);
    course_.add(Course::Leg::Kind::Answer, contexts_.current(), decision.value);
    return run(keep);
  }
  Pc& pc = *machine_.pc;
  // Common case: the CPU that ran last goes on.
  if (const unsigned cpu = contexts_.current();
      state_.running && decision.next == contexts_.agent(cpu) && contexts_.can_run(cpu)) {
    // A replay knows that it can go on.
    if (Liveness& liveness = contexts_.cpu(cpu).liveness; !liveness.live()) liveness.revive();
    state_.chosen_at = ops(cpu);
    if (until_conflict && !collect_pending_accesses(cpu)) keep = 0;
    return run(keep);
  }
  if (until_conflict) keep = 0;  // a new context asks at its first choice point
  tap_.flush();
  for (unsigned cpu = 0; cpu < pc.cpu_count(); ++cpu) {
    const AgentId here = contexts_.agent(cpu);
    const std::optional<uint8_t> by_itself =
        decision.next == here ? contexts_.automatic_interrupt(cpu) : std::nullopt;
    const bool comes_in = contexts_.current() != cpu || !state_.running;
    if (by_itself && (comes_in || !contexts_.can_run(cpu))) {
      contexts_.enter_interrupt(cpu, *by_itself, here);
    } else if (decision.next == here && contexts_.can_run(cpu)) {
      // A replay knows that it can go on.
      if (Liveness& liveness = contexts_.cpu(cpu).liveness; !liveness.live()) liveness.revive();
    } else {
      const std::optional<uint8_t> vector = contexts_.interrupt_of(decision.next, cpu);
      if (!vector) continue;
      contexts_.enter_interrupt(cpu, *vector, decision.next);
    }
    if (comes_in) contexts_.cpu(cpu).in_a_row = 0;
    contexts_.set_current(cpu);
    state_.running = true;
    state_.chosen_at = ops(cpu);
    return run(keep);
  }
  return finish(ToolError{fmt::format("the decision is to run {}, which cannot run after {} instructions",
                                      names_->agent(decision.next), instructions())});
}

// Uses the options of the current choice point, which have just been computed.
bool KernelMachine::collect_pending_accesses(unsigned cpu) {
  pending_accesses_.count = 0;
  for (const Option& option : contexts_.options()) {
    if (option.agent == contexts_.agent(cpu) || !is_memory(option.op.kind)) continue;
    if (pending_accesses_.count == PendingAccesses::kMost) return false;
    pending_accesses_.all[pending_accesses_.count++] = {
        option.op.object.raw,
        effect(option.op.kind) == Effect::Write ? OperandUse::Writes : OperandUse::Reads};
  }
  // If the CPU accepts interrupts now, the options include those that could arrive. An early timer is only
  // among them if its timer is already set.
  Pc& pc = *machine_.pc;
  const Registers& r = pc.cpu(cpu).regs;
  const bool is_open = (r.rflags & flag::kInterrupt) != 0 && !r.interrupt_shadow;
  const bool knows_timer = !contexts_.may_come_early(cpu) || pc.early_timer(cpu) || pc.timer_requested(cpu);
  pending_accesses_.stop_if_interruptible = !is_open || !knows_timer;
  pc.cpu(cpu).pending_changed = false;
  return stops_at_conflicts_ = true;
}

uint64_t KernelMachine::instructions() const {
  return machine_.pc->executed() - begin_executed_;
}
uint64_t KernelMachine::ops(unsigned cpu) const {
  return machine_.pc->cpu(cpu).regs.retired - begin_retired_[cpu];
}
// Returns the CPU's own instruction count at which the schedule stops it next.
uint64_t KernelMachine::next_stop(unsigned cpu) const {
  const ChoicePolicy::AgentPosition after{contexts_.agent(cpu), ops(cpu) + 1};
  const auto& stops = inputs_.policy.stops;
  const auto found = std::lower_bound(stops.begin(), stops.end(), after);
  return found != stops.end() && found->agent == after.agent ? found->ops : ~uint64_t{0};
}

Stop KernelMachine::run(uint32_t keep) {
  Pc& pc = *machine_.pc;
  while (true) {
    const unsigned cpu = contexts_.current();
    KernelContexts::CpuState& state = contexts_.cpu(cpu);
    const uint64_t before = ops(cpu);
    const bool stood = pc.cpu(cpu).at_place;
    // The search has already decided about the place of the next instruction, even if the CPU did not stop
    // there.
    const bool decided = stops_at_conflicts_ && !stood && before == state_.chosen_at;
    RunOptions options{
        .instructions = std::min(next_stop(cpu) - before, kExamine - before % kExamine),
        .passes = console_.dying() || (contexts_.scoped() && !state.inside) ? KernelContexts::kAllPlaces
                  : contexts_.scoped() || decided                           ? 0
                                                                            : keep,
        .pending = stops_at_conflicts_ && keep > 0 && !console_.dying() ? &pending_accesses_ : nullptr,
        .stop_on = static_cast<uint8_t>(state.interrupts.empty() ? 0 : Cpu::kIret),
        .stop_at_window = true,
        .offered = state.offered,
        .keeps_batch = events_.holds_back()};
    tap_.watches = watched_;
    contexts_.watch_for_writes();
    const bool silent = !pc.devices().has_console_output();
    const PcStop why = pc.run_cpu(cpu, options);
    if (stops_at_conflicts_ && pc.cpu(cpu).pending_changed) keep = 0;
    if (silent && pc.devices().has_console_output()) console_.set_speaker(cpu);
    if (why == PcStop::Place) contexts_.prefetch_next(cpu);
    course_.add(Course::Leg::Kind::Run, cpu, pc.cpu(cpu).regs.retired);
    const uint64_t done = ops(cpu) - before;
    const uint64_t passed = contexts_.scoped() ? (why == PcStop::Place ? 1 : 0) : pc.passed();
    state_.steps += passed;
    passed_ += static_cast<uint32_t>(passed - (stood && passed > 0 ? 1 : 0));
    const bool kept = keep > 0;
    keep -= static_cast<uint32_t>(std::min<uint64_t>(keep, passed));
    // The CPU has counted the places that it passed. Accesses of the policy are counted here.
    if (done > 0 && std::exchange(state.at_access, false)) ++state_.steps;
    const bool watched = is_of_policy(why);
    const bool asks = watched && reaches_access(cpu, keep);
    state.in_a_row += done;
    // Whatever changes the course of an execution is noticed at fixed instruction counts, or where the CPU
    // itself stops. It must not be noticed where only a policy or a replay stops the CPU.
    const bool budget = why == PcStop::Budget;
    const bool examines = (budget || why == PcStop::Paused) && ops(cpu) % kExamine == 0;
    for (unsigned other = 0; other < contexts_.cpus(); ++other) {
      if (other == cpu) continue;
      Liveness& liveness = contexts_.cpu(other).liveness;
      liveness.on_others_ran(done);
      if (examines && liveness.end_starvation()) keep = 0;  // the other CPU can run again
    }
    if (examines) state.liveness.examine(state.in_a_row);
    const bool was_dying = console_.dying();
    if (examines || (why != PcStop::Place && !watched && !budget)) console_.read();
    // The CPU that has begun to report the kernel's death finishes the report, even if it was preempted.
    const unsigned speaker = console_.speaker();
    if (console_.dying() && !was_dying && speaker != cpu && contexts_.can_run(speaker)) {
      contexts_.set_current(speaker);
      continue;
    }
    if (contexts_.scoped() && why == PcStop::Place && passed > 0 && kept) continue;
    if (watched && !asks) continue;
    if (std::optional<Stop> stop = after(why)) return std::move(*stop);
    // A schedule may also switch where the CPU stopped for another reason.
    if (!console_.dying() && ops(cpu) != state_.chosen_at && next_stop_is(cpu))
      return choice(ChoiceKind::Running);
  }
}

bool KernelMachine::is_of_policy(PcStop why) const {
  return why == PcStop::Access && machine_.pc->cpu(contexts_.current()).hit.watch < watched_.size();
}

// The CPU stands before an access of the policy. Returns whether the search must be asked; otherwise the
// access is passed, and counts as a choice point unless the context has just been chosen there.
bool KernelMachine::reaches_access(unsigned cpu, uint32_t& keep) {
  KernelContexts::CpuState& state = contexts_.cpu(cpu);
  if (console_.dying() || (contexts_.scoped() && !state.inside)) return false;
  // An instruction with several such accesses is one choice point. The chosen context executes at least one
  // step.
  if (std::exchange(state.at_access, true) || ops(cpu) == state_.chosen_at) return false;
  if (keep == 0 || stops_at_conflicts_) return true;
  --keep;
  ++passed_;
  return false;
}

std::optional<Stop> KernelMachine::after(PcStop why) {
  Pc& pc = *machine_.pc;
  const unsigned cpu = contexts_.current();
  KernelContexts::CpuState& state = contexts_.cpu(cpu);
  if (console_.dying() && (why == PcStop::Halted || (why == PcStop::Hypercall && state.parked))) {
    contexts_.leave_interrupts(cpu, true);
    return last_words();
  }
  if (protocol_.failure()) return fail();
  if (protocol_.notes_too_much()) return finish(limit_reached(LimitReached::Limit::Notes));
  // Ends that are found by polling are found at fixed instruction counts, so that they do not depend on where
  // else the machine stops.
  if (ops(cpu) % kSlice == 0) {
    if (stops()) return finish(Abandoned{"the search is over"});
    if (has_died()) return last_words();
    if (instructions() >= inputs_.max_steps) return finish(limit_reached());
  }
  switch (why) {
    case PcStop::PowerOff:
    case PcStop::Reset:
    case PcStop::Exit:
      return finish(Exited{});
    case PcStop::Shutdown:
      return finish(triple_fault());
    case PcStop::Unknown:
      return finish(ToolError{pc.trouble()});
    case PcStop::Idle:
      break;
    case PcStop::Budget:
      if (console_.dying()) return std::nullopt;
      if (!state.liveness.live()) return choice(ChoiceKind::Yielded);
      return std::nullopt;
    case PcStop::Place:
      // The chosen context executes at least one step.
      if (console_.dying() || ops(cpu) == state_.chosen_at) return std::nullopt;
      return choice(ChoiceKind::Running);
    case PcStop::Window:
      // A pending interrupt could arrive wherever the CPU enables interrupts again. It is enough that every
      // choice point offers it: choice points for each of these places would outnumber all others.
      if (pc.can_deliver(cpu)) state.offered = pc.next_vector(cpu);
      if (console_.dying()) return std::nullopt;
      if (const std::optional<uint8_t> vector = contexts_.automatic_interrupt(cpu)) {
        contexts_.enter_interrupt(cpu, *vector, contexts_.agent(cpu));
        return std::nullopt;
      }
      if (contexts_.scoped()) return std::nullopt;
      return choice(ChoiceKind::Running);
    case PcStop::Access: {
      if (is_of_policy(why)) return choice(ChoiceKind::Running);
      // A write outside of the scope makes no difference inside, so it does not wake a waiting CPU either. If
      // no other CPU can run, conclude() revives those that wait.
      if (contexts_.scoped() && !state.inside) return std::nullopt;
      const AccessHit& hit = pc.cpu(cpu).hit;
      // A CPU that spins for the same lock does not end another CPU's wait.
      if (state.liveness.changed_nothing(hit.pc, hit.address)) return std::nullopt;
      for (unsigned other = 0; other < contexts_.cpus(); ++other)
        contexts_.cpu(other).liveness.on_write(hit.address, hit.size);
      // Within a scope only accesses are choice points. The CPU stops at the next one.
      if (contexts_.scoped()) return std::nullopt;
      return choice(ChoiceKind::Running);
    }
    case PcStop::Halted:
      contexts_.leave_interrupts(cpu, true);
      state.liveness.on_halt();
      state.liveness.revive();
      return choice(ChoiceKind::Blocked);
    case PcStop::Paused:
      state.liveness.on_pause(ops(cpu));
      if (!state.liveness.live() && !console_.dying()) return choice(ChoiceKind::Yielded);
      return std::nullopt;
    case PcStop::Event: {
      const AgentId ended = contexts_.agent(cpu);
      contexts_.leave_interrupts(cpu, false);
      contexts_.update_scope(cpu);
      if (contexts_.agent(cpu) == ended || console_.dying()) return std::nullopt;
      return choice(ChoiceKind::Ended, ended);
    }
    case PcStop::Hypercall:
      if (protocol_.arity() != 0) return choice(ChoiceKind::Data);
      if (!state.parked) return std::nullopt;
      if (contexts_.all_flows_done()) return end_of_test();
      return choice(ChoiceKind::Ended);
  }
  return finish(ToolError{"the machine stopped for no reason"});
}

bool KernelMachine::next_stop_is(unsigned cpu) const {
  const ChoicePolicy::AgentPosition here{contexts_.agent(cpu), ops(cpu)};
  return std::binary_search(inputs_.policy.stops.begin(), inputs_.policy.stops.end(), here);
}

Stop KernelMachine::choice(ChoiceKind kind) {
  return choice(kind, state_.running ? contexts_.agent(contexts_.current()) : AgentId{});
}

Stop KernelMachine::choice(ChoiceKind kind, AgentId current) {
  state_.last = current;
  contexts_.set_kind(kind);
  contexts_.forget_options();
  if (kind != ChoiceKind::Data && contexts_.options().empty()) return conclude();
  if (kind == ChoiceKind::Yielded && !contexts_.enabled(contexts_.current()) && !contexts_.scoped())
    contexts_.offer_waiting(current, contexts_.current());
  return choice_point();
}

Stop KernelMachine::choice_point() {
  const Pc& pc = *machine_.pc;
  open_ = true;
  ChoicePoint point;
  point.position = Position{state_.steps};
  point.kind = contexts_.kind();
  point.current = state_.last;
  point.current_ops = state_.running ? ops(contexts_.current()) : 0;
  point.arity = protocol_.arity();
  point.passed = passed_;
  if (passed_ > 0 && stops_at_conflicts_) {
    const PendingAccess& passed = machine_.pc->cpu(contexts_.current()).passed;
    point.last_passed = {passed.touch == OperandUse::Nothing  ? OpKind::None
                         : passed.touch == OperandUse::Writes ? OpKind::Store
                                                              : OpKind::Load,
                         ObjectId{passed.address},
                         {}};
  }
  point.uses.until_conflict = !contexts_.scoped();
  point.source = &contexts_;
  uint64_t digest = fold(fold(static_cast<uint64_t>(point.kind), point.current.raw),
                         fold(point.current_ops, instructions()));
  for (unsigned cpu = 0; cpu < pc.cpu_count(); ++cpu) {
    const Registers& r = machine_.pc->cpu(cpu).regs;
    digest = fold(digest, fold(r.gpr[kRip], r.gpr[kRsp]));
  }
  point.digest = digest;
  return point;
}

uint64_t KernelMachine::state_hash() const {
  return machine_.pc->state_hash();
}

std::array<uint64_t, Liveness::kReasons> KernelMachine::liveness_counts() const {
  std::array<uint64_t, Liveness::kReasons> all{};
  for (unsigned cpu = 0; cpu < contexts_.cpus(); ++cpu)
    for (unsigned i = 0; i < Liveness::kReasons; ++i) all[i] += contexts_.cpu(cpu).liveness.counts()[i];
  return all;
}

// A halted CPU certainly waits. The other reasons are guesses.
EndFacts KernelMachine::ending() const {
  const auto waits = liveness_counts();
  const auto times = [&](Liveness::Why why) { return waits[static_cast<size_t>(why)]; };
  knowledge_.guessed =
      times(Liveness::Why::Pause) + times(Liveness::Why::Loop) + times(Liveness::Why::Starvation) > 0;
  return {.steps = slalom::Step{instructions()},
          .positions = position(),
          .digest = events_.digest(),
          .knowledge = &knowledge_};
}

}  // namespace slalom::vm
