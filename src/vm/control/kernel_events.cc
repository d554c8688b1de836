#include "vm/control/kernel_events.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

// Returns true if the CPU has switched to another thread, and not just to another stack of the same thread.
// The top of an interrupt stack holds the stack pointer to return to.
bool is_other_thread(const Cpu& cpu, const GuestTraits& guest, uint64_t from, uint64_t to) {
  if (guest.entry_stacks.has(from) || guest.entry_stacks.has(to)) return false;
  const auto leads_to = [&](uint64_t top, uint64_t stack) {
    const std::optional<uint64_t> back = read_word(cpu, top);
    return back && guest.stacks.are_one(*back, stack);
  };
  return !leads_to(to + 8, from) && !leads_to(from, to);
}

}  // namespace

KernelEvents::KernelEvents(Pc& pc, KernelContexts& contexts, const KernelMachineOptions& options)
    : pc_(pc), contexts_(contexts), options_(options), begin_executed_(pc.executed()) {
  communication_.set_interruptible(options.interruptible);
}

void KernelEvents::begin(EventSink& sink, bool at_end) {
  sink_ = at_end ? &journal_.begin(sink) : &sink;
  natural_ = false;
  state_ = State{};
  state_.deferred.resize(pc_.cpu_count());
  state_.stacks.cpus.resize(pc_.cpu_count());
  note_progress();
  communication_.clear();
}

KernelEvents::Saved KernelEvents::save() const {
  CHECK(!holds_back(), "a checkpoint of an execution whose events are emitted at its end");
  return {state_, communication_.save()};
}

void KernelEvents::restore(const Saved& saved) {
  state_ = saved.state;
  communication_.restore(saved.communication);
}

void KernelEvents::emit(uint64_t step, unsigned cpu, OpKind op, uint64_t pc, ObjectId object, int64_t value,
                        std::string_view text) {
  if (sink_ == nullptr) return;
  sink_->on_event({.step = slalom::Step{step - begin_executed_},
                   .agent = contexts_.agent(cpu),
                   .op = op,
                   .pc = Place{pc},
                   .object = object,
                   .value = value,
                   .text = text,
                   .recognised = contexts_.scoped()});  // with a scope these events are no part of the order
}

void KernelEvents::on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) {
  if (sink_ == nullptr || natural_) return;
  // Each CPU has its own APIC at the same address, so that is no shared memory.
  const auto is_device = [](const Access& access) { return Devices::is_mmio(access.physical); };
  std::vector<Access> memory;
  bool any_device = false, any_memory = false;
  uint64_t digest = state_.digest;
  for (const Access& access : accesses) {
    const bool counts = is_memory(access.op()) && !is_device(access);
    any_device |= is_device(access);
    any_memory |= counts;
    if (counts) digest = fold(digest + access.value, access.pc_bits ^ access.physical);
  }
  state_.digest = digest;
  if (any_device) {
    std::ranges::remove_copy_if(accesses, std::back_inserter(memory), is_device);
    accesses = memory;
  }
  KernelContexts::CpuState& state = contexts_.cpu(cpu.id);
  if (contexts_.scoped()) {
    if (memory.empty()) memory.assign(accesses.begin(), accesses.end());
    // Addresses below the kernel's are private memory of different programs, and may be equal.
    for (Access& access : memory)
      access.unordered = !state.inside || access.address().raw < options_.guest.first_kernel_address;
    accesses = memory;
  }
  const uint64_t stack = options_.guest.stacks.base_of(cpu.last_stack);
  FlowStacks::Stack& flow = state_.stacks.cpus[cpu.id];
  if (flow.entered && stack != 0 && state.interrupts.empty()) {
    flow.base = stack;
    flow.entered = false;
  }
  if (accesses.empty()) return;
  const slalom::Step first{first_step - begin_executed_};
  if (!any_memory) {
    state_.deferred[cpu.id].push_back({.event = {.step = first, .agent = contexts_.agent(cpu.id)},
                                       .calls = {accesses.begin(), accesses.end()},
                                       .thread = stack});
    return;
  }
  emit_deferred(cpu.id);
  if (!contexts_.scoped() || state.inside) {
    communication_.add(context_of(cpu.id, !state.interrupts.empty()), accesses);
    if (!holds_back()) communication_.add_instructions(accesses);
  }
  state.liveness.on_accesses(accesses);
  sink_->on_accesses(accesses, {.agent = contexts_.agent(cpu.id), .thread = stack, .first_step = first});
}

void KernelEvents::on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  if (sink_ == nullptr || natural_) return;
  switch (event.kind) {
    case CpuEvent::Kind::Interrupt:
      emit(step, cpu.id, OpKind::IrqEnter, event.pc, ObjectId{cpu.id}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::InterruptReturn:
      if (cpu.cpl == 3) contexts_.leave_interrupts(cpu.id, true);
      contexts_.update_scope(cpu.id);
      break;
    case CpuEvent::Kind::SystemCall:
      note_progress();
      state_.stacks.cpus[cpu.id].entered = true;
      emit(step, cpu.id, OpKind::SyscallEnter, event.pc, {}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::SystemReturn:
      note_progress();
      contexts_.leave_interrupts(cpu.id, true);
      emit(step, cpu.id, OpKind::SyscallExit, event.pc, {}, static_cast<int64_t>(event.value));
      break;
    case CpuEvent::Kind::Stack: {
      const KernelStacks& stacks = options_.guest.stacks;
      FlowStacks::Stack& flow = state_.stacks.cpus[cpu.id];
      if (stacks.base_of(event.number) == flow.base) flow.sleeps = event.number;
      if (stacks.base_of(event.value) == flow.base) flow.sleeps = 0;
      // The remaining handlers belong to a thread that no longer runs. Their return will end no context here.
      if (!contexts_.cpu(cpu.id).interrupts.empty() &&
          is_other_thread(cpu, options_.guest, event.number, event.value)) {
        emit_deferred(cpu.id);
        contexts_.leave_interrupts(cpu.id, true);
      }
      emit(step, cpu.id, OpKind::ThreadSwitch, event.pc, ObjectId{stacks.base_of(event.value)});
      contexts_.update_scope(cpu.id);
      break;
    }
    case CpuEvent::Kind::Exception:
    case CpuEvent::Kind::AddressSpace:
    case CpuEvent::Kind::Halt:
    case CpuEvent::Kind::Pause:
      break;
    case CpuEvent::Kind::FunctionEntry:
    case CpuEvent::Kind::FunctionReturn:
      if (contexts_.scoped()) contexts_.update_scope(cpu.id);
      if (model_ != nullptr) model_->on_event(cpu, event, step);
      break;
  }
}

void KernelEvents::defer(unsigned cpu, Event event) {
  event.step.raw -= begin_executed_;
  state_.deferred[cpu].push_back({event, std::string(event.text), {}, 0});
}

void KernelEvents::emit_deferred(unsigned cpu) {
  std::vector<Deferred>& deferred = state_.deferred[cpu];
  if (deferred.empty()) return;
  const AgentId running =
      contexts_.agent(cpu);  // an interrupt comes before the instruction at which it arrives
  for (Deferred& one : deferred) {
    if (one.event.agent != running) continue;
    one.event.text = one.text;
    if (one.calls.empty())
      sink_->on_event(one.event);
    else
      sink_->on_accesses(one.calls, {running, one.thread, one.event.step});
  }
  std::erase_if(deferred, [&](const Deferred& one) { return one.event.agent == running; });
}

}  // namespace slalom::vm
