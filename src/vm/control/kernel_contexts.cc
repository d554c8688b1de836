// Who can run on a KernelMachine: CPUs, the interrupts on them, and what of it a search may choose from.
#include <algorithm>

#include "vm/control/kernel_machine.h"

namespace slalom::vm {
namespace {

// Perhaps it is chosen to go on: its block is far away. Nothing happens where there is none.
void expect_to_run(const Cpu& cpu) {
  const Block* block = cpu.jumps->at(cpu.regs.gpr[kRip]).block;
  __builtin_prefetch(block);
  __builtin_prefetch(reinterpret_cast<const char*>(block) + sizeof(Block));
}

}  // namespace

AgentId KernelMachine::interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested) {
  // Linux's own vectors are at the top: these have readable ids.
  const uint32_t line = vector >= 0xd0 ? vector - 0xd0u : 0x100u + vector;
  AgentId agent = cpu_agent(cpu).interrupt(line);
  for (; nested > 0; --nested) agent = agent.interrupt(line);
  return agent;
}

// Another context than those of the same interrupt which it would interrupt.
AgentId KernelMachine::arriving(unsigned cpu, uint8_t vector) const {
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
  // Whoever spins waits for what it reads to change: an interrupt does not end that.
  return can_run(cpu) ? state_.cpus[cpu].liveness.live() : unlisted(cpu).has_value();
}

// Whoever spins is live again when what it reads is written.
void KernelMachine::watch_for_writes() {
  tap_.watches.clear();
  for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu)
    if (cpu != state_.current)
      for (const uint64_t address : state_.cpus[cpu].liveness.waits_for())
        tap_.watches.push_back({.first = address, .last = address + 7, .reads = false, .after = true});
}

// As the options of the choice point say, which were found just now.
bool KernelMachine::heed_others(unsigned cpu) {
  others_.count = 0;
  for (const Option& option : options()) {
    if (option.agent == agent(cpu) || !is_memory(option.op.kind)) continue;
    if (others_.count == Others::kMost) return false;
    others_.all[others_.count++] = {option.op.object.raw,
                                    effect(option.op.kind) == Effect::Write ? Touch::Writes : Touch::Reads};
  }
  // What could come to this CPU where it lets interrupts in is among the options if it does so now; but a
  // timer may have to be set first.
  Pc& pc = *machine_.pc;
  const Registers& r = pc.cpu(cpu).regs;
  const bool is_open = (r.rflags & flag::kInterrupt) != 0 && !r.interrupt_shadow;
  const bool has_timers = options_.contexts.timers && state_.cpus[cpu].early_timers < options_.early_timers;
  const bool knows_timer = !has_timers || pc.early_timer(cpu) || pc.timer_requested(cpu);
  others_.may_come_in = !is_open || !knows_timer;
  pc.cpu(cpu).others_changed = false;
  return heeds_others_ = true;
}

std::optional<uint8_t> KernelMachine::unlisted(unsigned cpu) const {
  const Contexts& contexts = options_.contexts;
  if (!explores_ || (contexts.timers && contexts.ipis && contexts.devices)) return std::nullopt;
  for (const uint8_t vector : vectors(cpu))
    if (!contexts.has(vector)) return vector;
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
  tap_.flush();  // that was another context
  // Whatever has just returned has done so before the interrupt comes.
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
  state.inside = false;  // what the CPU itself reads to get there is nobody's
  const bool delivered = pc.deliver(cpu, vector);
  note(Course::Leg::Kind::Deliver, cpu, vector);
  CHECK(delivered, "interrupt {} could not be delivered to CPU {}", vector, cpu);
  look_at_scope(cpu);
}

// Handlers whose return has been seen; `all`: a switch to another thread, the idle loop or the program has
// left them for good.
void KernelMachine::leave_interrupts(unsigned cpu, bool all) {
  std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
  const Cpu& at = machine_.pc->cpu(cpu);
  while (!nested.empty() && (all || (nested.back().return_rip == at.regs.gpr[kRip] &&
                                     nested.back().return_rsp == at.regs.gpr[kRsp]))) {
    nested.pop_back();
    machine_.pc->cpu(cpu).others_changed = true;  // who runs there has another name now
    if (!all) break;
  }
}

std::span<const Option> KernelMachine::options() const {
  if (!options_known_) {
    options_found_.clear();
    const Contexts contexts = explores_ ? options_.contexts : Contexts{};
    std::vector<Option> others;  // CPUs that are not the search's
    for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu) {
      const Place here{machine_.pc->cpu(cpu).regs.gpr[kRip]};
      if (enabled(cpu)) {
        expect_to_run(machine_.pc->cpu(cpu));
        ((contexts.cpus >> cpu & 1) != 0 ? options_found_ : others)
            .push_back({agent(cpu), next_operations_.of(machine_.pc->cpu(cpu))});
      }
      if (!machine_.pc->can_deliver(cpu)) continue;
      for (const uint8_t vector : vectors(cpu))
        if (contexts.has(vector))
          options_found_.push_back({arriving(cpu, vector), {OpKind::IrqEnter, ObjectId{cpu}, here}});
    }
    if (options_found_.empty()) options_found_ = std::move(others);
    // A timer that is not due only comes where it interrupts somebody, or where nothing else can happen.
    const bool interrupts = state_.kind == ChoiceKind::Running || options_found_.empty();
    for (unsigned cpu = 0; interrupts && cpu < state_.cpus.size(); ++cpu)
      if (const std::optional<uint8_t> vector = early_timer(cpu))
        options_found_.push_back({arriving(cpu, *vector),
                                  {OpKind::IrqEnter, ObjectId{cpu}, Place{machine_.pc->cpu(cpu).gpr(kRip)}}});
    // They are few, and mostly in order already.
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
