#include "vm/control/kernel_machine.h"

#include <algorithm>

#include "base/hash.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/memory/record.h"

namespace slalom::vm {
namespace {

TapFilter test_filter() {
  // Record accesses of ring 0 except those to its own stacks: only these can be shared by flows. Record
  // calls, so that every access has its callers.
  return {.rings = 1, .own_stack = false, .calls = true};
}

}  // namespace

struct KernelMachine::Saved {
  Pc::Checkpoint checkpoint = 0;
  State state;
  Communication::State communication;
  std::unique_ptr<const GuestModel::Saved> model;  // nullptr without a model
  FunctionWatch::Open open;
};

KernelMachine::KernelMachine(Booted machine, KernelMachineOptions options, std::shared_ptr<const Names> names)
    : machine_(std::move(machine)),
      options_(std::move(options)),
      names_(std::move(names)),
      tap_(*this, test_filter()) {
  Pc& pc = *machine_.pc;
  CHECK(options_.flows >= 1 && options_.flows <= pc.cpu_count(), "{} flows on {} CPUs", options_.flows,
        pc.cpu_count());
  recognise({.locks = true, .memory = true});
  communication_.set_interruptible(options_.interruptible);
  pc.set_hypercalls(this);
  pc.attach(&tap_);
  pc.ram().make_base();
  begin_ = pc.take();
  begin_executed_ = pc.executed();
  for (unsigned i = 0; i < pc.cpu_count(); ++i) begin_retired_.push_back(pc.cpu(i).regs.retired);
}

void KernelMachine::recognise(Recognised what) {
  if (recognised_ == what) return;
  recognised_ = what;
  tap_.functions = FunctionWatch();
  model_.reset();
  if (options_.make_model != nullptr && (what.locks || what.memory)) {
    const GuestModelOptions wanted{.locks = what.locks, .memory = what.memory, .pages = what.memory};
    GuestSink& sink = *this;
    model_ = options_.make_model(wanted, sink);
    model_->watch(tap_);
  }
  options_.scope.watch(tap_.functions);
}

KernelMachine::~KernelMachine() {
  machine_.pc->attach(nullptr);
  machine_.pc->set_hypercalls(nullptr);
}

Result<void> KernelMachine::reset(const Inputs& inputs) {
  if (inputs.policy.where != inputs_.policy.where || inputs.policy.places != inputs_.policy.places)
    places_set_ = false;
  inputs_ = inputs;
  open_ = false;
  return {};
}

Stop KernelMachine::start(EventSink& sink) {
  begin_anew(sink);
  return choice(ChoiceKind::Start);
}

void KernelMachine::begin_anew(EventSink& sink) {
  Pc& pc = *machine_.pc;
  sink_ = nullptr;
  tap_.flush();  // drops what an abandoned execution has left
  pc.restore(begin_);
  pc.devices().take_console_output();
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
  sink_ = &sink;
  // Executions with a scope do not use the journal: communication inside the scope says nothing about memory
  // outside.
  if (inputs_.at_end && !scoped()) sink_ = &journal_.begin(sink);
  if (course_ != nullptr) *course_ = {.legs = {}, .begin = begin_executed_, .end = 0, .end_hash = 0};
  state_ = State{};
  state_.cpus.resize(pc.cpu_count());
  state_.results.resize(options_.flows);
  state_.progress = pc.time();
  communication_.clear();
  if (model_ != nullptr) model_->restore(nullptr);
  tap_.functions.set_open({});
  for (unsigned cpu = 0; cpu < pc.cpu_count(); ++cpu) update_scope(cpu);
  feedback_.places.clear();
  natural_ = false;
  unasked_ = 0;
}

Stop KernelMachine::resume(Decision decision) {
  if (!open_) return Outcome(ToolError{"resume() without a choice point: call reset() and start() first"});
  open_ = false;
  unasked_ = 0;
  stops_at_conflicts_ = false;
  if (state_.arity != 0) {
    if (decision.value >= state_.arity)
      return finish(ToolError{fmt::format("value {} of {}", decision.value, state_.arity)});
    machine_.pc->cpu(state_.current).gpr(kRax) = decision.value;
    note(Course::Leg::Kind::Answer, state_.current, decision.value);
    state_.arity = 0;
    return run(decision.lease);
  }
  Pc& pc = *machine_.pc;
  // Common case: the CPU that ran last goes on.
  if (const unsigned cpu = state_.current; state_.running && decision.next == agent(cpu) && can_run(cpu)) {
    // A replay knows that it can go on.
    if (!state_.cpus[cpu].liveness.live()) state_.cpus[cpu].liveness.revive();
    state_.chosen_at = ops(cpu);
    if (decision.until_conflict && !collect_pending_accesses(cpu)) decision.lease = 0;
    return run(decision.lease);
  }
  if (decision.until_conflict) decision.lease = 0;  // a new context asks at its first choice point
  tap_.flush();
  for (unsigned cpu = 0; cpu < pc.cpu_count(); ++cpu) {
    const std::optional<uint8_t> by_itself =
        decision.next == agent(cpu) ? automatic_interrupt(cpu) : std::nullopt;
    const bool comes_in = state_.current != cpu || !state_.running;
    if (by_itself && (comes_in || !can_run(cpu))) {
      enter_interrupt(cpu, *by_itself, agent(cpu));
    } else if (decision.next == agent(cpu) && can_run(cpu)) {
      // A replay knows that it can go on.
      if (!state_.cpus[cpu].liveness.live()) state_.cpus[cpu].liveness.revive();
    } else {
      bool delivered = false;
      std::vector<uint8_t> possible = vectors(cpu);
      if (const std::optional<uint8_t> timer = early_timer(cpu)) possible.push_back(*timer);
      for (const uint8_t vector : possible) {
        if (decision.next != arriving_agent(cpu, vector)) continue;
        enter_interrupt(cpu, vector, decision.next);
        delivered = true;
        break;
      }
      if (!delivered) continue;
    }
    if (state_.current != cpu || !state_.running) state_.cpus[cpu].in_a_row = 0;
    state_.current = cpu;
    state_.running = true;
    state_.chosen_at = ops(cpu);
    return run(decision.lease);
  }
  return finish(ToolError{fmt::format("the decision is to run {}, which cannot run after {} instructions",
                                      names_->agent(decision.next), instructions())});
}

uint64_t KernelMachine::instructions() const {
  return machine_.pc->executed() - begin_executed_;
}
uint64_t KernelMachine::ops(unsigned cpu) const {
  return machine_.pc->cpu(cpu).regs.retired - begin_retired_[cpu];
}
// Returns the CPU's own instruction count at which the schedule stops it next.
uint64_t KernelMachine::next_stop(unsigned cpu) const {
  const ChoicePolicy::AgentPosition after{agent(cpu), ops(cpu) + 1};
  const auto& stops = inputs_.policy.stops;
  const auto found = std::lower_bound(stops.begin(), stops.end(), after);
  return found != stops.end() && found->agent == after.agent ? found->ops : ~uint64_t{0};
}

// Stack beyond an interrupt's frame belongs to the interrupted context.
void KernelMachine::update_scope(unsigned cpu) {
  Cpu& here = machine_.pc->cpu(cpu);
  CpuState& state = state_.cpus[cpu];
  state.inside = false;
  if (!scoped()) return;
  const uint64_t pointer = here.gpr(kRsp);
  uint64_t end = (pointer & ~(kKernelStack - 1)) + kKernelStack;
  if (!state.interrupts.empty() && state.interrupts.back().return_rsp >= pointer)
    end = std::min(end, state.interrupts.back().return_rsp);
  state.inside = options_.scope.is_inside(tap_.functions.open(), pointer, end);
  // Outside of the scope the CPU passes all places. Inside, it stops at each place, and run() counts the
  // lease.
  here.passes = state.inside ? 0 : kAllPlaces;
}

Stop KernelMachine::run(uint32_t lease) {
  Pc& pc = *machine_.pc;
  while (true) {
    const unsigned cpu = state_.current;
    CpuState& state = state_.cpus[cpu];
    const uint64_t before = ops(cpu);
    const bool stood = pc.cpu(cpu).at_place;
    // The search has already decided about the place of the next instruction, even if the CPU did not stop
    // there.
    const bool decided = stops_at_conflicts_ && !stood && before == state_.chosen_at;
    RunOptions options{
        .instructions = std::min(next_stop(cpu) - before, kExamine - before % kExamine),
        .passes = state_.dying || (scoped() && !state.inside) ? kAllPlaces
                  : scoped() || decided                       ? 0
                                                              : lease,
        .pending = stops_at_conflicts_ && lease > 0 && !state_.dying ? &pending_accesses_ : nullptr,
        .stop_on = static_cast<uint8_t>(state.interrupts.empty() ? 0 : Cpu::kIret),
        .stop_at_window = true,
        .offered = state.offered,
        .keeps_batch = sink_ == &journal_};
    watch_for_writes();
    const bool silent = !pc.devices().has_console_output();
    const PcStop why = pc.run_cpu(cpu, options);
    if (stops_at_conflicts_ && pc.cpu(cpu).pending_changed) lease = 0;
    if (silent && pc.devices().has_console_output()) state_.speaker = cpu;
    if (why == PcStop::Place) next_operations_.prefetch(pc.cpu(cpu));
    note(Course::Leg::Kind::Run, cpu, pc.cpu(cpu).regs.retired);
    const uint64_t done = ops(cpu) - before;
    const uint64_t passed = scoped() ? (why == PcStop::Place ? 1 : 0) : pc.passed();
    state_.steps += passed;
    unasked_ += static_cast<uint32_t>(passed - (stood && passed > 0 ? 1 : 0));
    const uint32_t leased = lease;
    lease -= static_cast<uint32_t>(std::min<uint64_t>(lease, passed));
    state.in_a_row += done;
    // Whatever changes the course of an execution is noticed at fixed instruction counts, or where the CPU
    // itself stops. It must not be noticed where only a policy or a replay stops the CPU.
    const bool budget = why == PcStop::Budget;
    const bool examines = (budget || why == PcStop::Paused) && ops(cpu) % kExamine == 0;
    for (unsigned other = 0; other < state_.cpus.size(); ++other) {
      if (other == cpu) continue;
      state_.cpus[other].liveness.on_others_ran(done);
      if (examines && state_.cpus[other].liveness.end_starvation()) lease = 0;  // the other CPU can run again
    }
    if (examines) state.liveness.examine(state.in_a_row);
    const bool was_dying = state_.dying;
    if (examines || (why != PcStop::Place && !budget)) read_console();
    // The CPU that has begun to report the kernel's death finishes the report, even if it was preempted.
    if (state_.dying && !was_dying && state_.speaker != cpu && can_run(state_.speaker)) {
      state_.current = state_.speaker;
      continue;
    }
    if (scoped() && why == PcStop::Place && passed > 0 && leased > 0) continue;
    if (std::optional<Stop> stop = after(why)) return std::move(*stop);
    // A schedule may also switch where the CPU stopped for another reason.
    if (!state_.dying && ops(cpu) != state_.chosen_at && next_stop_is(cpu))
      return choice(ChoiceKind::Running);
  }
}

std::optional<Stop> KernelMachine::after(PcStop why) {
  Pc& pc = *machine_.pc;
  const unsigned cpu = state_.current;
  CpuState& state = state_.cpus[cpu];
  if (state_.dying && (why == PcStop::Halted || (why == PcStop::Hypercall && state.parked))) {
    leave_interrupts(cpu, true);
    return last_words();
  }
  if (state_.failure) return fail();
  if (notes_too_much()) return finish(limit_reached(LimitReached::Limit::Notes));
  // Ends that are found by polling are found at fixed instruction counts, so that they do not depend on where
  // else the machine stops.
  if (ops(cpu) % kSlice == 0) {
    if (stops()) return finish(Abandoned{"the search is over"});
    if (state_.dying && state_.dying_since == 0) state_.dying_since = instructions();
    if (state_.reported || (state_.dying && instructions() - state_.dying_since > kLastWords))
      return last_words();
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
      if (state_.dying) return std::nullopt;
      if (!state.liveness.live()) return choice(ChoiceKind::Yielded);
      return std::nullopt;
    case PcStop::Place:
      // The chosen context executes at least one step.
      if (state_.dying || ops(cpu) == state_.chosen_at) return std::nullopt;
      return choice(ChoiceKind::Running);
    case PcStop::Window:
      // A pending interrupt could arrive wherever the CPU enables interrupts again. It is enough that every
      // choice point offers it: choice points for each of these places would outnumber all others.
      if (pc.can_deliver(cpu)) state.offered = pc.next_vector(cpu);
      if (state_.dying) return std::nullopt;
      if (const std::optional<uint8_t> vector = automatic_interrupt(cpu)) {
        enter_interrupt(cpu, *vector, agent(cpu));
        return std::nullopt;
      }
      if (scoped()) return std::nullopt;
      return choice(ChoiceKind::Running);
    case PcStop::Access: {
      // A write outside of the scope makes no difference inside, so it does not wake a waiting CPU either. If
      // no other CPU can run, conclude() revives those that wait.
      if (scoped() && !state.inside) return std::nullopt;
      const AccessHit& hit = pc.cpu(cpu).hit;
      // A CPU that spins for the same lock does not end another CPU's wait.
      if (state.liveness.changed_nothing(hit.pc, hit.address)) return std::nullopt;
      for (CpuState& other : state_.cpus)
        for (const uint64_t address : other.liveness.waits_for())
          if (hit.address < address + 8 && address < hit.address + hit.size) {
            other.liveness.revive();
            break;
          }
      // Within a scope only accesses are choice points. The CPU stops at the next one.
      if (scoped()) return std::nullopt;
      return choice(ChoiceKind::Running);
    }
    case PcStop::Halted:
      leave_interrupts(cpu, true);
      state.liveness.on_halt();
      state.liveness.revive();
      return choice(ChoiceKind::Blocked);
    case PcStop::Paused:
      state.liveness.on_pause(ops(cpu));
      if (!state.liveness.live() && !state_.dying) return choice(ChoiceKind::Yielded);
      return std::nullopt;
    case PcStop::Event: {
      const AgentId ended = agent(cpu);
      leave_interrupts(cpu, false);
      update_scope(cpu);
      if (agent(cpu) == ended || state_.dying) return std::nullopt;
      return choice(ChoiceKind::Ended, ended);
    }
    case PcStop::Hypercall:
      if (state_.arity != 0) return choice(ChoiceKind::Data);
      if (!state.parked) return std::nullopt;
      if (std::ranges::all_of(state_.cpus.begin(), state_.cpus.begin() + options_.flows,
                              [](const CpuState& one) { return one.done; }))
        return end_of_test();
      return choice(ChoiceKind::Ended);
  }
  return finish(ToolError{"the machine stopped for no reason"});
}

bool KernelMachine::next_stop_is(unsigned cpu) const {
  const ChoicePolicy::AgentPosition here{agent(cpu), ops(cpu)};
  return std::binary_search(inputs_.policy.stops.begin(), inputs_.policy.stops.end(), here);
}

Stop KernelMachine::choice(ChoiceKind kind) {
  return choice(kind, state_.running ? agent(state_.current) : AgentId{});
}

Stop KernelMachine::choice(ChoiceKind kind, AgentId current) {
  state_.kind = kind;
  state_.last = current;
  options_known_ = false;
  if (kind != ChoiceKind::Data && options().empty()) return conclude();
  // A CPU that seems to wait may still be able to go on. A replay may choose it.
  if (kind == ChoiceKind::Yielded && !enabled(state_.current) && !scoped()) {
    options_found_.push_back({current, next_operations_.of(machine_.pc->cpu(state_.current))});
    std::ranges::sort(options_found_, {}, &Option::agent);
  }
  return choice_point();
}

Stop KernelMachine::choice_point() {
  const Pc& pc = *machine_.pc;
  open_ = true;
  ChoicePoint point;
  point.position = Position{state_.steps};
  point.kind = state_.kind;
  point.current = state_.last;
  point.current_ops = state_.running ? ops(state_.current) : 0;
  point.arity = state_.arity;
  point.skipped = unasked_;
  if (unasked_ > 0 && stops_at_conflicts_) {
    const PendingAccess& passed = machine_.pc->cpu(state_.current).passed;
    point.last_skipped = {passed.touch == OperandUse::Nothing  ? OpKind::None
                          : passed.touch == OperandUse::Writes ? OpKind::Store
                                                               : OpKind::Load,
                          ObjectId{passed.address},
                          {}};
  }
  point.supports_until_conflict = !scoped();
  point.source = this;
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
  for (const CpuState& cpu : state_.cpus)
    for (unsigned i = 0; i < Liveness::kReasons; ++i) all[i] += cpu.liveness.counts()[i];
  return all;
}

// A halted CPU certainly waits. The other reasons are guesses.
EndFacts KernelMachine::ending() const {
  const auto waits = liveness_counts();
  const auto times = [&](Liveness::Why why) { return waits[static_cast<size_t>(why)]; };
  feedback_.guessed =
      times(Liveness::Why::Pause) + times(Liveness::Why::Loop) + times(Liveness::Why::Starvation) > 0;
  return {.steps = slalom::Step{instructions()},
          .positions = position(),
          .digest = state_.digest,
          .feedback = &feedback_};
}

Snapshots::Id KernelMachine::take() {
  CHECK(sink_ != &journal_, "a checkpoint of an execution that is told at its end");
  auto saved =
      std::make_unique<Saved>(Saved{machine_.pc->take(), state_, communication_.save(),
                                    model_ == nullptr ? nullptr : model_->save(), tap_.functions.open()});
  const Id id = saved->checkpoint;
  if (saved_.size() <= id) saved_.resize(id + 1);
  saved_[id] = std::move(saved);
  return id;
}

Stop KernelMachine::restore(Id id) {
  CHECK(id < saved_.size() && saved_[id] != nullptr, "no checkpoint {}", id);
  machine_.pc->restore(static_cast<Pc::Checkpoint>(id));
  machine_.pc->devices().take_console_output();
  state_ = saved_[id]->state;
  communication_.restore(saved_[id]->communication);
  if (model_ != nullptr) model_->restore(saved_[id]->model.get());
  tap_.functions.set_open(saved_[id]->open);
  for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu) update_scope(cpu);
  feedback_.places.clear();
  options_known_ = false;
  unasked_ = 0;
  return choice_point();
}

void KernelMachine::drop(Id id) {
  machine_.pc->drop(static_cast<Pc::Checkpoint>(id));
  saved_[id].reset();
}

}  // namespace slalom::vm
