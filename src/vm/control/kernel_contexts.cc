#include "vm/control/kernel_contexts.h"

#include <algorithm>

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

AgentId KernelContexts::interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested) {
  // The vectors of the highest priorities, which kernels use for their own ends, get short ids.
  const uint32_t line = vector >= 0xd0 ? vector - 0xd0u : 0x100u + vector;
  AgentId agent = cpu_agent(cpu).interrupt(line);
  for (; nested > 0; --nested) agent = agent.interrupt(line);
  return agent;
}

// Skips the agents of running contexts of the same interrupt, which the new context would interrupt.
AgentId KernelContexts::arriving_agent(unsigned cpu, uint8_t vector) const {
  const std::vector<Interrupt>& interrupted = state_.cpus[cpu].interrupts;
  for (unsigned nested = 0;; ++nested) {
    const AgentId agent = interrupt_agent(cpu, vector, nested);
    if (std::ranges::find(interrupted, agent, &Interrupt::agent) == interrupted.end()) return agent;
  }
}

void KernelContexts::begin() {
  state_ = State{};
  state_.cpus.resize(pc_.cpu_count());
  for (unsigned cpu = 0; cpu < cpus(); ++cpu) update_scope(cpu);
}

void KernelContexts::restore(const State& state) {
  state_ = state;
  options_known_ = false;
  for (unsigned cpu = 0; cpu < cpus(); ++cpu) update_scope(cpu);
}

bool KernelContexts::all_flows_done() const {
  return std::ranges::all_of(state_.cpus.begin(), state_.cpus.begin() + options_.flows,
                             [](const CpuState& one) { return one.done; });
}

bool KernelContexts::can_run(unsigned cpu) const {
  return !state_.cpus[cpu].parked && pc_.cpu(cpu).regs.activity == Activity::Running;
}
bool KernelContexts::enabled(unsigned cpu) const {
  // A spinning CPU waits until the memory that it reads changes. An interrupt does not end that wait.
  return can_run(cpu) ? state_.cpus[cpu].liveness.live() : automatic_interrupt(cpu).has_value();
}

// A spinning CPU becomes live again when another CPU writes the memory that it reads.
void KernelContexts::watch_for_writes() {
  for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu)
    if (cpu != state_.current)
      for (const uint64_t address : state_.cpus[cpu].liveness.waits_for())
        tap_.watches.push_back({.first = address, .last = address + 7, .reads = false, .after = true});
}

std::optional<uint8_t> KernelContexts::automatic_interrupt(unsigned cpu) const {
  const Contexts& contexts = options_.contexts;
  if (whole() || (contexts.timers && contexts.ipis && contexts.devices)) return std::nullopt;
  for (const uint8_t vector : vectors(cpu))
    if (!contexts.has(vector, options_.guest)) return vector;
  return std::nullopt;
}

std::vector<uint8_t> KernelContexts::vectors(unsigned cpu) const {
  std::vector<uint8_t> found;
  if (!pc_.can_deliver(cpu)) return found;
  const bool open = (pc_.cpu(cpu).regs.rflags & flag::kInterrupt) != 0;
  for (const PendingInterrupt& one : pc_.devices().pending_interrupts(cpu)) {
    const bool nmi = one.source == PendingInterrupt::Source::Nmi;
    if (nmi ? !pc_.cpu(cpu).regs.nmi_blocked : open && one.deliverable) found.push_back(one.vector);
  }
  return found;
}

std::optional<uint8_t> KernelContexts::early_timer(unsigned cpu) const {
  if (whole() || !may_come_early(cpu)) return std::nullopt;
  return pc_.early_timer(cpu);
}

std::optional<uint8_t> KernelContexts::interrupt_of(AgentId agent, unsigned cpu) const {
  std::vector<uint8_t> possible = vectors(cpu);
  if (const std::optional<uint8_t> timer = early_timer(cpu)) possible.push_back(*timer);
  for (const uint8_t vector : possible)
    if (agent == arriving_agent(cpu, vector)) return vector;
  return std::nullopt;
}

void KernelContexts::enter_interrupt(unsigned cpu, uint8_t vector, AgentId as) {
  CpuState& state = state_.cpus[cpu];
  tap_.flush();  // these accesses belong to the interrupted context
  // A function that has just returned did so before the interrupt arrives.
  tap_.base_step = pc_.executed();
  tap_.functions.at_block(pc_.cpu(cpu), tap_, pc_.cpu(cpu).gpr(kRip), static_cast<uint8_t>(OpKind::Return),
                          0);
  const Interrupt context{as, pc_.cpu(cpu).gpr(kRip), pc_.cpu(cpu).gpr(kRsp)};
  state.interrupts.push_back(context);
  state.parked = state.at_access = false;
  state.offered.reset();
  state.liveness.revive();
  if (pc_.early_timer(cpu) == vector) {
    pc_.skip_to_timer(cpu);
    course_.add(Course::Leg::Kind::Timer, cpu, 0);
    ++state.early_timers;
  }
  state.inside = false;  // the CPU's own reads during delivery are outside of the scope
  const bool delivered = pc_.deliver(cpu, vector);
  course_.add(Course::Leg::Kind::Deliver, cpu, vector);
  CHECK(delivered, "interrupt {} could not be delivered to CPU {}", vector, cpu);
  update_scope(cpu);
}

void KernelContexts::leave_interrupts(unsigned cpu, bool all) {
  std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
  const Cpu& at = pc_.cpu(cpu);
  while (!nested.empty() && (all || (nested.back().return_rip == at.regs.gpr[kRip] &&
                                     nested.back().return_rsp == at.regs.gpr[kRsp]))) {
    nested.pop_back();
    pc_.cpu(cpu).pending_changed = true;  // the agent that runs on this CPU has changed
    if (!all) break;
  }
}

std::span<const Option> KernelContexts::options() const {
  if (!options_known_ && control_ == Control::None) {  // only the flow that begins is chosen
    options_found_.clear();
    for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
      options_found_.push_back({agent(cpu), next_operations_.of(pc_.cpu(cpu))});
    options_known_ = true;
  }
  if (!options_known_) {
    options_found_.clear();
    const Contexts contexts = whole() ? Contexts{} : options_.contexts;
    std::vector<Option> others;  // CPUs that the search does not decide about
    for (unsigned cpu = 0; cpu < state_.cpus.size(); ++cpu) {
      const Place here{pc_.cpu(cpu).regs.gpr[kRip]};
      if (enabled(cpu)) {
        prefetch_code(pc_.cpu(cpu));
        ((contexts.cpus >> cpu & 1) != 0 ? options_found_ : others)
            .push_back({agent(cpu), next_operations_.of(pc_.cpu(cpu))});
      }
      if (!pc_.can_deliver(cpu)) continue;
      for (const uint8_t vector : vectors(cpu))
        if (contexts.has(vector, options_.guest))
          options_found_.push_back({arriving_agent(cpu, vector), {OpKind::IrqEnter, ObjectId{cpu}, here}});
    }
    if (options_found_.empty()) options_found_ = std::move(others);
    // A timer fires early only if it interrupts a running context, or if nothing else can happen.
    const bool interrupts = state_.kind == ChoiceKind::Running || options_found_.empty();
    for (unsigned cpu = 0; interrupts && cpu < state_.cpus.size(); ++cpu)
      if (const std::optional<uint8_t> vector = early_timer(cpu))
        options_found_.push_back(
            {arriving_agent(cpu, *vector), {OpKind::IrqEnter, ObjectId{cpu}, Place{pc_.cpu(cpu).gpr(kRip)}}});
    // Options are few, and usually in order already.
    bool is_sorted = true;
    for (size_t i = 1; i < options_found_.size(); ++i)
      is_sorted = is_sorted && options_found_[i - 1].agent < options_found_[i].agent;
    if (!is_sorted) {
      std::ranges::sort(options_found_, {}, &Option::agent);
      CHECK(std::ranges::adjacent_find(options_found_, {}, &Option::agent) == options_found_.end(),
            "two contexts with one name after {} instructions", pc_.executed());
    }
    options_known_ = true;
  }
  return options_found_;
}

void KernelContexts::offer_waiting(AgentId agent, unsigned cpu) {
  options_found_.push_back({agent, next_operations_.of(pc_.cpu(cpu))});
  std::ranges::sort(options_found_, {}, &Option::agent);
}

std::vector<Option> KernelContexts::blocked() const {
  std::vector<Option> found;
  for (unsigned cpu = 0; cpu < options_.flows; ++cpu)
    if (!enabled(cpu) && !state_.cpus[cpu].done)
      found.push_back({agent(cpu), {OpKind::None, {}, Place{pc_.cpu(cpu).regs.gpr[kRip]}}});
  return found;
}

// Stack beyond an interrupt's frame belongs to the interrupted context.
void KernelContexts::update_scope(unsigned cpu) {
  Cpu& here = pc_.cpu(cpu);
  CpuState& state = state_.cpus[cpu];
  state.inside = false;
  if (!scoped()) return;
  const uint64_t pointer = here.gpr(kRsp);
  uint64_t end = options_.guest.stacks.end_of(pointer);
  if (!state.interrupts.empty() && state.interrupts.back().return_rsp >= pointer)
    end = std::min(end, state.interrupts.back().return_rsp);
  state.inside = options_.scope.is_inside(tap_.functions.open(), pointer, end);
  // Outside of the scope the CPU passes all places. Inside, it stops at each place, and KernelMachine::run()
  // counts the places at which the forecast keeps it.
  here.passes = state.inside ? 0 : kAllPlaces;
}

}  // namespace slalom::vm
