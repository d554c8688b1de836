// What a KernelMachine does with events of its CPUs, its console and its guest while it runs.
#include <algorithm>
#include <iterator>

#include "base/hash.h"
#include "guest/slalom.h"
#include "vm/control/hypercall.h"
#include "vm/control/kernel_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/cpu/memory/record.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostConsoleLine = 4096;  // bytes; the rest of a longer line is dropped
constexpr uint64_t kMostResults = uint64_t{1} << 20;
constexpr uint64_t kMostValues = 1024;  // of one SLALOM_CHOOSE

// Returns true if the CPU has switched to another thread, and not just to another stack of the same thread.
// The top of an interrupt stack holds the stack pointer to return to.
bool is_other_thread(const Cpu& cpu, const GuestTraits& guest, uint64_t from, uint64_t to) {
  if (guest.entry_stacks.has(from) || guest.entry_stacks.has(to)) return false;
  const auto leads_to = [&](uint64_t top, uint64_t stack) {
    const std::optional<uint64_t> back = read_word(cpu, top);
    return back && (*back ^ stack) < kKernelStack;
  };
  return !leads_to(to + 8, from) && !leads_to(from, to);
}

bool has_any(std::string_view line, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

}  // namespace

void KernelMachine::emit(uint64_t step, unsigned cpu, OpKind op, uint64_t pc, ObjectId object, int64_t value,
                         std::string_view text) {
  if (sink_ == nullptr) return;
  sink_->on_event({.step = slalom::Step{step - begin_executed_},
                   .agent = agent(cpu),
                   .op = op,
                   .pc = Place{pc},
                   .object = object,
                   .value = value,
                   .text = text,
                   .recognised = scoped()});  // with a scope these events are no part of the order
}

void KernelMachine::on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) {
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
  CpuState& state = state_.cpus[cpu.id];
  if (scoped()) {
    if (memory.empty()) memory.assign(accesses.begin(), accesses.end());
    // Addresses below the kernel's are private memory of different programs, and may be equal.
    for (Access& access : memory)
      access.unordered = !state.inside || access.address().raw < options_.guest.first_kernel_address;
    accesses = memory;
  }
  const uint64_t stack = cpu.last_stack & ~(kKernelStack - 1);
  if (state.entered && stack != 0 && state.interrupts.empty()) {
    state.flow_stack = stack;
    state.entered = false;
  }
  if (accesses.empty()) return;
  const slalom::Step first{first_step - begin_executed_};
  if (!any_memory) {
    state.deferred.push_back({.event = {.step = first, .agent = agent(cpu.id)},
                              .calls = {accesses.begin(), accesses.end()},
                              .thread = stack});
    return;
  }
  emit_deferred(cpu.id);
  if (!scoped() || state.inside) {
    communication_.add(context_of(cpu.id, !state.interrupts.empty()), accesses);
    if (sink_ != &journal_) communication_.add_instructions(accesses);
  }
  state.liveness.on_accesses(accesses);
  sink_->on_accesses(accesses, {.agent = agent(cpu.id), .thread = stack, .first_step = first});
}

void KernelMachine::on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  if (sink_ == nullptr || natural_) return;
  switch (event.kind) {
    case CpuEvent::Kind::Interrupt:
      emit(step, cpu.id, OpKind::IrqEnter, event.pc, ObjectId{cpu.id}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::InterruptReturn:
      if (cpu.cpl == 3) leave_interrupts(cpu.id, true);
      update_scope(cpu.id);
      break;
    case CpuEvent::Kind::SystemCall:
      state_.progress = machine_.pc->time();
      state_.cpus[cpu.id].entered = true;
      emit(step, cpu.id, OpKind::SyscallEnter, event.pc, {}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::SystemReturn:
      state_.progress = machine_.pc->time();
      leave_interrupts(cpu.id, true);
      emit(step, cpu.id, OpKind::SyscallExit, event.pc, {}, static_cast<int64_t>(event.value));
      break;
    case CpuEvent::Kind::Stack: {
      CpuState& state = state_.cpus[cpu.id];
      if ((event.number & ~(kKernelStack - 1)) == state.flow_stack) state.flow_sleeps = event.number;
      if ((event.value & ~(kKernelStack - 1)) == state.flow_stack) state.flow_sleeps = 0;
      // The remaining handlers belong to a thread that no longer runs. Their return will end no context here.
      if (!state.interrupts.empty() && is_other_thread(cpu, options_.guest, event.number, event.value)) {
        emit_deferred(cpu.id);
        leave_interrupts(cpu.id, true);
      }
      emit(step, cpu.id, OpKind::ThreadSwitch, event.pc, ObjectId{event.value & ~(kKernelStack - 1)});
      update_scope(cpu.id);
      break;
    }
    case CpuEvent::Kind::Exception:
    case CpuEvent::Kind::AddressSpace:
    case CpuEvent::Kind::Halt:
    case CpuEvent::Kind::Pause:
      break;
    case CpuEvent::Kind::FunctionEntry:
    case CpuEvent::Kind::FunctionReturn:
      if (scoped()) update_scope(cpu.id);
      if (model_ != nullptr) model_->on_event(cpu, event, step);
      break;
  }
}

void KernelMachine::on_guest_event(const Cpu& cpu, const GuestEvent& guest) {
  Event event = guest.event;
  event.step.raw -= begin_executed_;
  event.agent = agent(cpu.id);
  event.recognised = true;
  if (event.op == OpKind::TryLock) event.value = 1;  // emitted only if the lock was taken
  note_lock(cpu.id, event);
  state_.cpus[cpu.id].deferred.push_back({event, std::string(event.text), {}, 0});
}

void KernelMachine::note_lock(unsigned cpu, const Event& event) {
  switch (event.op) {
    case OpKind::Lock:
    case OpKind::TryLock:
    case OpKind::ReadLock:
    case OpKind::WriteLock:
      state_.locks.push_back({event.object.raw, cpu_agent(cpu)});
      break;
    case OpKind::Unlock:
    case OpKind::ReadUnlock:
    case OpKind::WriteUnlock: {
      const State::HeldLock mine{event.object.raw, cpu_agent(cpu)};
      const auto held = std::ranges::find(state_.locks, mine);
      if (held != state_.locks.end()) state_.locks.erase(held);
      break;
    }
    default:
      break;
  }
}

void KernelMachine::emit_deferred(unsigned cpu) {
  std::vector<DeferredEvent>& deferred = state_.cpus[cpu].deferred;
  if (deferred.empty()) return;
  const AgentId running = agent(cpu);  // an interrupt comes before the instruction at which it arrives
  for (DeferredEvent& one : deferred) {
    if (one.event.agent != running) continue;
    one.event.text = one.text;
    if (one.calls.empty())
      sink_->on_event(one.event);
    else
      sink_->on_accesses(one.calls, {running, one.thread, one.event.step});
  }
  std::erase_if(deferred, [&](const DeferredEvent& one) { return one.event.agent == running; });
}

void KernelMachine::read_console() {
  Devices& devices = machine_.pc->devices();
  if (!devices.has_console_output()) return;
  for (const char c : devices.take_console_output()) {
    if (c == '\r') continue;
    if (c == '\n')
      console_line(std::exchange(state_.line, {}));
    else if (state_.line.size() < kMostConsoleLine)
      state_.line += c;
  }
}

void KernelMachine::console_line(const std::string& line) {
  if (natural_ && state_.reported) return;  // consequences of the reported failure
  emit(machine_.pc->executed(), state_.speaker, OpKind::Console, machine_.pc->cpu(state_.speaker).gpr(kRip),
       {}, 0, line);
  const GuestTraits& guest = options_.guest;
  state_.dying = state_.dying || has_any(line, guest.failed);
  if (!state_.dying) return;
  state_.traced = state_.traced || has_any(line, guest.traced);
  state_.reported = state_.reported || has_any(line, guest.reported) ||
                    (natural_ && has_any(line, guest.reported_by_check));
}

// Returns false for a note beyond the limit, which ends the execution: recorders keep all notes in memory.
bool KernelMachine::leave_note(Cpu& cpu, const std::string& text) {
  state_.note_bytes += text.size() + sizeof(Event);
  if (notes_too_much()) return false;
  tap_.flush();
  emit(machine_.pc->executed(), cpu.id, OpKind::Note, cpu.gpr(kRip), {}, 0, text);
  return true;
}

bool KernelMachine::on_hypercall(Cpu& cpu) {
  const Hypercall call = hypercall_of(cpu);
  // A CPU whose flow is done repeats SLALOM_DONE after each interrupt. That is no progress.
  const bool again = call.number == SLALOM_DONE && cpu.id < options_.flows && state_.cpus[cpu.id].done;
  if (!again) state_.progress = machine_.pc->time();
  switch (call.number) {
    case SLALOM_PRESENT:
      answer(cpu, SLALOM_VERSION);
      return true;
    case SLALOM_READY:
      answer(cpu, 0);
      return true;
    case SLALOM_PROGRAM: {
      std::optional<std::span<const uint8_t>> program;
      if (call.a < options_.programs.size()) program = options_.programs[call.a];
      give_bytes(cpu, program, call.b, call.c);
      return true;
    }
    case SLALOM_DONE: {
      answer(cpu, natural_ ? 0 : 1);
      if (natural_ || call.a >= options_.flows || cpu.id >= options_.flows) return true;
      CpuState& state = state_.cpus[cpu.id];
      if (!state.done)
        state_.results[call.a] =
            read_buffer(cpu, call.b, call.c, kMostResults).value_or(std::vector<uint8_t>{});
      state.done = state.parked = true;
      return false;
    }
    case SLALOM_CHECKED:
      state_.checked = static_cast<int64_t>(call.a);
      return false;
    case SLALOM_CHOOSE:
      answer(cpu, 0);
      if (natural_ || call.a < 2 || call.a > kMostValues) return true;
      state_.arity = static_cast<uint32_t>(call.a);
      return false;
    case SLALOM_NOTE:
      return leave_note(cpu, read_text(cpu, call.a, call.b));
    case SLALOM_FAIL:
      state_.failure = read_text(cpu, call.a, call.b);
      state_.failed_part = call.c;
      return false;
    case SLALOM_INPUT:
      give_bytes(cpu, std::nullopt, call.b, call.c);
      return true;
    default:  // SLALOM_FLOWS, SLALOM_OUTPUT, and calls of other versions
      return true;
  }
}

}  // namespace slalom::vm
