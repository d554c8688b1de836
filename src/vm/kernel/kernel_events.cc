// What a KernelMachine hears from its CPUs, its console and its guest while it runs.
#include <algorithm>

#include "guest/slalom.h"
#include "vm/kernel/kernel_machine.h"
#include "vm/memory/mmu.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostText = 4096;
constexpr size_t kMostResults = size_t{1} << 20;

bool is_fatal(std::string_view line) {
  constexpr std::string_view kWords[] = {"BUG: kernel NULL pointer",
                                         "BUG: unable to handle",
                                         "Oops:",
                                         "general protection fault",
                                         "kernel BUG at",
                                         "Kernel panic",
                                         "divide error:",
                                         "stack-protector:",
                                         "BUG: scheduling while atomic",
                                         "invalid opcode:",
                                         "double fault:"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

}  // namespace

void KernelMachine::tell(unsigned cpu, OpKind op, uint64_t pc, ObjectId object, int64_t value,
                         std::string_view text) {
  sink_->on_event({.step = slalom::Step{instructions()},
                   .agent = agent(cpu),
                   .op = op,
                   .pc = Place{pc},
                   .object = object,
                   .value = value,
                   .text = text});
}

void KernelMachine::on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) {
  if (sink_ == nullptr || natural_) return;
  communication_.add(cpu.id, accesses);
  state_.cpus[cpu.id].liveness.on_accesses(accesses);
  sink_->on_accesses(accesses, {.agent = agent(cpu.id),
                                .thread = cpu.regs.gpr[kRsp] & ~uint64_t{0x3fff},
                                .first_step = slalom::Step{first_step - begin_executed_}});
}

void KernelMachine::on_event(const Cpu& cpu, const CpuEvent& event, uint64_t) {
  if (sink_ == nullptr || natural_) return;
  switch (event.kind) {
    case CpuEvent::Kind::Interrupt:
      tell(cpu.id, OpKind::IrqEnter, event.pc, ObjectId{cpu.id}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::InterruptReturn:
      if (cpu.cpl == 3) leave_interrupts(cpu.id, true);
      break;
    case CpuEvent::Kind::SystemCall:
      state_.progress = machine_.pc->time();
      tell(cpu.id, OpKind::SyscallEnter, event.pc, {}, static_cast<int64_t>(event.number));
      break;
    case CpuEvent::Kind::SystemReturn:
      state_.progress = machine_.pc->time();
      leave_interrupts(cpu.id, true);
      tell(cpu.id, OpKind::SyscallExit, event.pc, {}, static_cast<int64_t>(event.value));
      break;
    case CpuEvent::Kind::Stack:
      tell(cpu.id, OpKind::ThreadSwitch, event.pc, ObjectId{event.value & ~uint64_t{0x3fff}});
      break;
    case CpuEvent::Kind::Exception:
    case CpuEvent::Kind::AddressSpace:
    case CpuEvent::Kind::Halt:
    case CpuEvent::Kind::Pause:
    case CpuEvent::Kind::Hypercall:
      break;
  }
}

void KernelMachine::read_console() {
  Devices& devices = machine_.pc->devices();
  if (!devices.has_console_output()) return;
  for (const char c : devices.take_console_output()) {
    if (c == '\r') continue;
    if (c == '\n')
      console_line(std::exchange(state_.line, {}));
    else if (state_.line.size() < kMostText)
      state_.line += c;
  }
}

void KernelMachine::console_line(const std::string& line) {
  tell(state_.current, OpKind::Console, machine_.pc->cpu(state_.current).gpr(kRip), {}, 0, line);
  if (!state_.dying && is_fatal(line)) {
    state_.dying = true;
    state_.dying_since = instructions();
  }
  if (state_.dying && line.find("---[ end ") != std::string::npos) state_.reported = true;
}

bool KernelMachine::copy_in(Cpu& cpu, uint64_t address, std::span<uint8_t> bytes) const {
  while (!bytes.empty()) {
    const uint64_t size = std::min<uint64_t>(bytes.size(), kPageSize - (address & (kPageSize - 1)));
    Physical physical;
    if (!translate_quietly(cpu, address, physical) || !machine_.pc->ram().read(physical, bytes.first(size)))
      return false;
    address += size;
    bytes = bytes.subspan(size);
  }
  return true;
}

bool KernelMachine::copy_out(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const uint64_t size = std::min<uint64_t>(bytes.size(), kPageSize - (address & (kPageSize - 1)));
    Physical physical;
    if (!translate_quietly(cpu, address, physical) || !machine_.pc->ram().write(physical, bytes.first(size)))
      return false;
    address += size;
    bytes = bytes.subspan(size);
  }
  return true;
}

bool KernelMachine::on_hypercall(Cpu& cpu) {
  const uint64_t number = cpu.gpr(kRax), a = cpu.gpr(kRdi), b = cpu.gpr(kRsi), c = cpu.gpr(kRdx);
  uint64_t& answer = cpu.gpr(kRax);
  state_.progress = machine_.pc->time();
  const auto text = [&](uint64_t address, uint64_t size) {
    std::string bytes(std::min<uint64_t>(size, kMostText), '\0');
    if (!copy_in(cpu, address, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
      bytes = "(text that is not in memory)";
    return bytes;
  };
  switch (number) {
    case SLALOM_PRESENT:
      answer = SLALOM_VERSION;
      return true;
    case SLALOM_READY:
      answer = 0;
      return true;
    case SLALOM_PROGRAM:
      answer = ~uint64_t{0};
      if (a < options_.programs.size() && options_.programs[a].size() <= c &&
          copy_out(cpu, b, options_.programs[a]))
        answer = options_.programs[a].size();
      return true;
    case SLALOM_DONE: {
      answer = natural_ ? 0 : 1;
      if (natural_ || a >= options_.flows || cpu.id >= options_.flows) return true;
      CpuState& state = state_.cpus[cpu.id];
      if (!state.done) {
        std::vector<uint8_t> results(std::min<uint64_t>(c, kMostResults));
        if (copy_in(cpu, b, results)) state_.results[a] = std::move(results);
        state.done = true;
      }
      state.parked = true;
      return false;
    }
    case SLALOM_CHECKED:
      state_.checked = static_cast<int64_t>(a);
      return false;
    case SLALOM_CHOOSE:
      answer = 0;
      if (natural_ || a < 2 || a > 1024) return true;
      state_.arity = static_cast<uint32_t>(a);
      return false;
    case SLALOM_NOTE:
      tell(cpu.id, OpKind::Note, cpu.gpr(kRip), {}, 0, text(a, b));
      return true;
    case SLALOM_FAIL:
      state_.failure = text(a, b);
      return false;
    case SLALOM_INPUT:
      answer = ~uint64_t{0};
      return true;
    default:  // SLALOM_OUTPUT, and what other versions know
      return true;
  }
}

}  // namespace slalom::vm
