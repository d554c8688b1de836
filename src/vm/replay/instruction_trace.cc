#include "vm/replay/instruction_trace.h"

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/printable.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/vectors.h"

namespace slalom::vm {
namespace {

constexpr size_t kBuffer = 1 << 20;
constexpr uint64_t kKernel = 0xffff800000000000;  // addresses below have no names
constexpr std::string_view kRegisters[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

// Adds the names of branch targets, and of operands whose addresses the instruction contains.
std::string disassemble(std::span<const uint8_t> bytes, uint64_t rip, bool is_long, const Names& names,
                        size_t& size) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, is_long ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                   is_long ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  char text[256];
  size = 0;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &in, operands)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &in, operands, in.operand_count_visible, text,
                                                    sizeof text, rip, nullptr)))
    return "(unknown)";
  size = in.length;
  std::string named = text;
  for (unsigned i = 0; i < in.operand_count_visible; ++i) {
    ZyanU64 address = 0;
    if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&in, &operands[i], rip, &address)) || address < kKernel)
      continue;
    const std::string name = names.object(ObjectId{address});
    if (!name.starts_with("0x")) named += fmt::format(" <{}>", name);
  }
  return named;
}

std::string value_of(const Access& access) {
  // Accesses of more than eight bytes only have a hash of their value.
  return access.size > 8 ? fmt::format("#{:016x}", access.value) : fmt::format("{:#x}", access.value);
}

std::string_view access_name(const Access& access) {
  return access.wrote || access.op() == OpKind::Store || access.op() == OpKind::AtomicStore ? "store"
                                                                                            : "load";
}

bool is_locked(const Access& access) {
  return access.op() == OpKind::ReadModifyWrite || access.op() == OpKind::CompareExchange;
}

}  // namespace

InstructionTrace::InstructionTrace(ScheduledRun& run, const Names& names, std::FILE* out)
    : run_(run),
      names_(names),
      out_(out),
      tap_(*this, {.rings = 1 << 0 | 1 << 3, .own_stack = true, .calls = true}),
      cpus_(run.pc().cpu_count()) {
  run_.pc().attach(&tap_);
}

InstructionTrace::~InstructionTrace() {
  run_.pc().attach(nullptr);
}

std::string InstructionTrace::place(uint64_t address) {
  const auto [known, added] = places_.try_emplace(address);
  if (added) known->second = printable(names_.place(Place{address}));
  return known->second;
}

std::string InstructionTrace::object(uint64_t address) {
  if (address < kKernel) return {};
  const auto [known, added] = objects_.try_emplace(address);
  if (added) known->second = printable(names_.object(ObjectId{address}));
  return known->second.starts_with("0x") ? std::string() : " " + known->second;
}

void InstructionTrace::add(std::string& to, unsigned cpu, std::string_view kind,
                           std::string_view text) const {
  fmt::format_to(std::back_inserter(to), "{:>8} cpu{} {:<7} {}\n", step_, cpu, kind, text);
}

const InstructionTrace::Decoded& InstructionTrace::decode(const Cpu& cpu, uint64_t rip) {
  std::array<uint8_t, 15> bytes{};
  const bool is_long = cpu.mode.is_long();
  const size_t size = read_memory(cpu, is_long ? rip : static_cast<uint32_t>(cpu.code_base + rip), bytes);
  Decoded& known = decoded_[rip];
  if (known.size == 0 || std::memcmp(known.bytes.data(), bytes.data(), known.size) != 0) {
    known.bytes = bytes;
    const std::string text =
        printable(disassemble(std::span(bytes).first(size), rip, is_long, names_, known.size));
    const std::string where = cpu.cpl == 0 ? place(rip) : "user";
    known.text = fmt::format("{:#x} {}  {}", rip, where, text);
    known.line = cpu.cpl == 0 ? printable(names_.line(Place{rip})) : std::string();
  }
  return known;
}

void InstructionTrace::on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t) {
  for (const Access& access : accesses) {
    if (access.op() == OpKind::Call) {
      // The tap reports a call at its target.
      add(before_, cpu.id, "call",
          fmt::format("{:#x} {}", access.address().raw, place(access.address().raw)));
    } else if (access.op() == OpKind::Return) {
      add(before_, cpu.id, "return",
          fmt::format("{:#x} {} rax={:#x}", access.address().raw, place(access.address().raw),
                      cpus_[cpu.id].gpr[kRax]));
    } else {
      add(after_, cpu.id, access_name(access),
          fmt::format("{:#x} {} {}{}{}", access.address().raw, uint64_t{access.size}, value_of(access),
                      is_locked(access) ? " locked" : "", object(access.address().raw)));
    }
  }
}

void InstructionTrace::on_event(const Cpu& cpu, const CpuEvent& event, uint64_t) {
  switch (event.kind) {
    case CpuEvent::Kind::Interrupt:
      add(before_, cpu.id, "irq",
          fmt::format("{:#x} {} at {:#x}", event.number, vector_name(event.number), event.pc));
      leads_to(cpu);
      break;
    case CpuEvent::Kind::Exception:
      add(before_, cpu.id, "fault",
          fmt::format("{:#x} {} at {:#x} code={:#x} cr2={:#x}", event.number, vector_name(event.number),
                      event.pc, event.value, cpu.regs.cr2));
      leads_to(cpu);
      break;
    case CpuEvent::Kind::InterruptReturn:
      add(after_, cpu.id, "iret", fmt::format("{:#x}", event.pc));
      break;
    case CpuEvent::Kind::SystemCall:
      add(after_, cpu.id, "syscall",
          fmt::format("{} {:#x} {:#x} {:#x} {:#x} {:#x} {:#x}", event.number, event.arguments[0],
                      event.arguments[1], event.arguments[2], event.arguments[3], event.arguments[4],
                      event.arguments[5]));
      break;
    case CpuEvent::Kind::SystemReturn:
      add(after_, cpu.id, "sysret", fmt::format("{}", static_cast<int64_t>(event.value)));
      break;
    case CpuEvent::Kind::Stack:
      add(after_, cpu.id, "stack", fmt::format("{:#x} {:#x}", event.number, event.value));
      break;
    case CpuEvent::Kind::AddressSpace:
    case CpuEvent::Kind::Halt:
    case CpuEvent::Kind::Pause:
    case CpuEvent::Kind::FunctionEntry:
    case CpuEvent::Kind::FunctionReturn:
      break;
  }
}

// The next instruction is not the expected one. It is decoded after it was executed.
void InstructionTrace::leads_to(const Cpu& cpu) {
  cpus_[cpu.id].rip = cpu.regs.gpr[kRip];
  cpus_[cpu.id].decoded = nullptr;
}

void InstructionTrace::record_before(unsigned id) {
  Cpu& cpu = run_.pc().cpu(id);
  StateBefore& before = cpus_[id];
  before = {.rip = cpu.gpr(kRip), .retired = cpu.regs.retired, .flags = cpu.rflags()};
  std::copy_n(cpu.regs.gpr.begin(), before.gpr.size(), before.gpr.begin());
  // Decode it before it runs, because it may modify itself.
  if (cpu.regs.activity == Activity::Running) before.decoded = &decode(cpu, before.rip);
}

bool InstructionTrace::instruction(std::span<const unsigned> cpus) {
  for (const unsigned cpu : cpus) record_before(cpu);
  run_.forward(1);
  const auto found = std::ranges::find_if(
      cpus, [&](unsigned cpu) { return run_.pc().cpu(cpu).regs.retired != cpus_[cpu].retired; });
  if (found == cpus.end()) return false;
  const unsigned id = *found;
  Cpu& cpu = run_.pc().cpu(id);
  const StateBefore& before = cpus_[id];
  const Decoded& decoded = before.decoded != nullptr ? *before.decoded : decode(cpu, before.rip);

  if (id != last_)
    add(buffer_, id, "switch",
        last_ ? fmt::format("from cpu{}", *last_) : names_.agent(KernelMachine::cpu_agent(id)));
  last_ = id;
  buffer_ += before_;
  std::string changed;
  for (size_t i = 0; i < before.gpr.size(); ++i)
    if (cpu.regs.gpr[i] != before.gpr[i])
      fmt::format_to(std::back_inserter(changed), " {}={:#x}", kRegisters[i], cpu.regs.gpr[i]);
  if (cpu.rflags() != before.flags) fmt::format_to(std::back_inserter(changed), " flags={:#x}", cpu.rflags());
  add(buffer_, id, "insn",
      fmt::format("{}{}{}{}{}", decoded.text, changed.empty() ? "" : "  ;", changed,
                  decoded.line.empty() ? "" : "  // ", decoded.line));
  buffer_ += after_;
  before_.clear();
  after_.clear();
  ++step_;
  flush(kBuffer);
  return true;
}

void InstructionTrace::flush(size_t keep) {
  if (buffer_.size() <= keep) return;
  failed_ |= std::fwrite(buffer_.data(), 1, buffer_.size(), out_) != buffer_.size();
  buffer_.clear();
}

bool InstructionTrace::write_flows() {
  while (!failed_) {
    const std::optional<unsigned> cpu = run_.next_cpu();
    if (!cpu || !instruction({&*cpu, 1})) break;
  }
  flush(0);
  return !failed_ && std::fflush(out_) == 0;
}

bool InstructionTrace::write_check() {
  std::vector<unsigned> all(cpus_.size());
  std::ranges::generate(all, [next = 0u]() mutable { return next++; });
  while (!failed_ && run_.check_left() > 0 && instruction(all)) {
  }
  flush(0);
  return !failed_ && std::fflush(out_) == 0;
}

}  // namespace slalom::vm
