// KernelMachine: which contexts (CPUs and interrupts) can run, and which of them the search may choose.
#include <algorithm>

#include "vm/control/kernel_machine.h"

namespace slalom::vm {
namespace {

// Prefetches the CPU's next block, since the CPU may be chosen to run. Prefetching an invalid address does no
// harm.
void prefetch_code(const Cpu& cpu) {
  const Block* block = cpu.jumps->at(cpu.regs.gpr[kRip]).block;
  __builtin_prefetch(block);
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(block) + sizeof(Block)));
}

}  // namespace

AgentId KernelMachine::interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested) {
  // The vectors of the highest priorities, which kernels use for their own ends, get short ids.
  const uint32_t line = vector >= 0xd0 ? vector - 0xd0u : 0x100u + vector;
  AgentId agent = cpu_agent(cpu).interrupt(line);
  for (; nested > 0; --nested) agent = agent.interrupt(line);
  return agent;
}

// Skips the agents of running contexts of the same interrupt, which the new context would interrupt.
AgentId KernelMachine::arriving_agent(unsigned cpu, uint8_t vector) const {
  const std::vector<Interrupt>& interrupted = state_.cpus[cpu].interrupts;
  for (unsigned nested = 0;; ++nested) {
    const AgentId agent = interrupt_agent(cpu, vector, nested);
    if (std::ranges::find(interrupted, agent, &Interrupt::agent) == interrupted.end()) return agent;
  }
}

bool KernelMachine::can_run(unsigned cpu) const {
  return !state_.cpus[cpu].parked && machine_.pc->cpu(cpu).regs.activity == Activity::Running;
}
bool KernelMachine::enabled(unsigned cpu) const {
  // A spinning CPU waits until the memory that it reads changes. An interrupt does not end that wait.
  return can_run(cpu) ? state_.cpus[cpu].liveness.live() : automatic_interrupt(cpu).has_value();
}

// A spinning CPU becomes live again when another CPU writes the memory that it reads.
void KernelMachine::watch_for_writes() {
  tap_.watches.clear();
  for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu)
    if (cpu != state_.current)
      for (const uint64_t address : state_.cpus[cpu].liveness.waits_for())
        tap_.watches.push_back({.first = address, .last = address + 7, .reads = false, .after = true});
}

// Uses the options of the current choice point, which have just been computed.
bool KernelMachine::collect_pending_accesses(unsigned cpu) {
  pending_accesses_.count = 0;
  for (const Option& option : options()) {
    if (option.agent == agent(cpu) || !is_memory(option.op.kind)) continue;
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
  const bool has_timers = options_.contexts.timers && state_.cpus[cpu].early_timers < options_.early_timers;
  const bool knows_timer = !has_timers || pc.early_timer(cpu) || pc.timer_requested(cpu);
  pending_accesses_.stop_if_interruptible = !is_open || !knows_timer;
  pc.cpu(cpu).pending_changed = false;
  return stops_at_conflicts_ = true;
}

std::optional<uint8_t> KernelMachine::automatic_interrupt(unsigned cpu) const {
  const Contexts& contexts = options_.contexts;
  if (!explores_ || (contexts.timers && contexts.ipis && contexts.devices)) return std::nullopt;
  for (const uint8_t vector : vectors(cpu))
    if (!contexts.has(vector, options_.guest)) return vector;
  return std::nullopt;
}

std::vector<uint8_t> KernelMachine::vectors(unsigned cpu) const {
  std::vector<uint8_t> found;
  Pc& pc = *machine_.pc;
  if (!pc.can_deliver(cpu)) return found;
  const bool open = (pc.cpu(cpu).regs.rflags & flag::kInterrupt) != 0;
  for (const PendingInterrupt& one : pc.devices().pending_interrupts(cpu)) {
    const bool nmi = one.source == PendingInterrupt::Source::Nmi;
    if (nmi ? !pc.cpu(cpu).regs.nmi_blocked : open && one.deliverable) found.push_back(one.vector);
  }
  return found;
}

std::optional<uint8_t> KernelMachine::early_timer(unsigned cpu) const {
  if (!explores_ || !options_.contexts.timers || state_.cpus[cpu].early_timers >= options_.early_timers)
    return std::nullopt;
  return machine_.pc->early_timer(cpu);
}

void KernelMachine::enter_interrupt(unsigned cpu, uint8_t vector, AgentId as) {
  Pc& pc = *machine_.pc;
  CpuState& state = state_.cpus[cpu];
  tap_.flush();  // these accesses belong to the interrupted context
  // A function that has just returned did so before the interrupt arrives.
  tap_.base_step = pc.executed();
  tap_.functions.at_block(pc.cpu(cpu), tap_, pc.cpu(cpu).gpr(kRip), static_cast<uint8_t>(OpKind::Return), 0);
  const Interrupt context{as, pc.cpu(cpu).gpr(kRip), pc.cpu(cpu).gpr(kRsp)};
  state.interrupts.push_back(context);
  state.parked = false;
  state.offered.reset();
  state.liveness.revive();
  if (pc.early_timer(cpu) == vector) {
    pc.skip_to_timer(cpu);
    note(Course::Leg::Kind::Timer, cpu, 0);
    ++state.early_timers;
  }
  state.inside = false;  // the CPU's own reads during delivery are outside of the scope
  const bool delivered = pc.deliver(cpu, vector);
  note(Course::Leg::Kind::Deliver, cpu, vector);
  CHECK(delivered, "interrupt {} could not be delivered to CPU {}", vector, cpu);
  update_scope(cpu);
}

// Ends contexts whose handler has returned. `all`: the CPU has left all handlers for good, by a switch to
// another thread, to the idle loop or to the program.
void KernelMachine::leave_interrupts(unsigned cpu, bool all) {
  std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
  const Cpu& at = machine_.pc->cpu(cpu);
  while (!nested.empty() && (all || (nested.back().return_rip == at.regs.gpr[kRip] &&
                                     nested.back().return_rsp == at.regs.gpr[kRsp]))) {
    nested.pop_back();
    machine_.pc->cpu(cpu).pending_changed = true;  // the agent that runs on this CPU has changed
    if (!all) break;
  }
}

std::span<const Option> KernelMachine::options() const {
  if (!options_known_) {
    options_found_.clear();
    const Contexts contexts = explores_ ? options_.contexts : Contexts{};
    std::vector<Option> others;  // CPUs that the search does not decide about
    for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu) {
      const Place here{machine_.pc->cpu(cpu).regs.gpr[kRip]};
      if (enabled(cpu)) {
        prefetch_code(machine_.pc->cpu(cpu));
        ((contexts.cpus >> cpu & 1) != 0 ? options_found_ : others)
            .push_back({agent(cpu), next_operations_.of(machine_.pc->cpu(cpu))});
      }
      if (!machine_.pc->can_deliver(cpu)) continue;
      for (const uint8_t vector : vectors(cpu))
        if (contexts.has(vector, options_.guest))
          options_found_.push_back({arriving_agent(cpu, vector), {OpKind::IrqEnter, ObjectId{cpu}, here}});
    }
    if (options_found_.empty()) options_found_ = std::move(others);
    // A timer fires early only if it interrupts a running context, or if nothing else can happen.
    const bool interrupts = state_.kind == ChoiceKind::Running || options_found_.empty();
    for (unsigned cpu = 0; interrupts && cpu < state_.cpus.size(); ++cpu)
      if (const std::optional<uint8_t> vector = early_timer(cpu))
        options_found_.push_back({arriving_agent(cpu, *vector),
                                  {OpKind::IrqEnter, ObjectId{cpu}, Place{machine_.pc->cpu(cpu).gpr(kRip)}}});
    // Options are few, and usually in order already.
    bool is_sorted = true;
    for (size_t i = 1; i < options_found_.size(); ++i)
      is_sorted = is_sorted && options_found_[i - 1].agent < options_found_[i].agent;
    if (!is_sorted) {
      std::ranges::sort(options_found_, {}, &Option::agent);
      CHECK(std::ranges::adjacent_find(options_found_, {}, &Option::agent) == options_found_.end(),
            "two contexts with one name after {} instructions", instructions());
    }
    options_known_ = true;
  }
  return options_found_;
}

std::vector<Option> KernelMachine::blocked() const {
  std::vector<Option> found;
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!enabled(cpu) && !state_.cpus[cpu].done)
      found.push_back({agent(cpu), {OpKind::None, {}, Place{machine_.pc->cpu(cpu).regs.gpr[kRip]}}});
  return found;
}

}  // namespace slalom::vm
