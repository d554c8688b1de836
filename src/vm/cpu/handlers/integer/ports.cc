// Port input and output. All of it returns to the run loop, because a device may request something.
#include "vm/cpu/handler.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

bool port_allowed(Cpu& cpu, uint16_t port, unsigned size) {
  const unsigned iopl = (cpu.regs.rflags >> 12) & 3;
  if (!cpu.protected_mode() || (cpu.cpl <= iopl && !cpu.vm86())) return true;
  const Segment& task = cpu.regs.tr;
  if ((task.selector & 0xfffc) == 0 || (task.type() & 8) == 0 || task.limit < 103)
    return cpu.raise(kProtection, 0);
  uint16_t map;
  if (!load_system(cpu, task.base + 102, 2, &map)) return false;
  const uint64_t at = uint64_t{map} + port / 8u;
  if (at + 1 > task.limit) return cpu.raise(kProtection, 0);
  uint16_t bits;
  if (!load_system(cpu, task.base + at, 2, &bits)) return false;
  return ((bits >> (port & 7)) & ((1u << size) - 1)) == 0 || cpu.raise(kProtection, 0);
}

bool unknown_port(Cpu& cpu, const char* what, uint16_t port, unsigned size) {
  cpu.unknown = fmt::format("{} of {} bytes at port {:#x}, where no device is known", what, size, port);
  cpu.leave = Leave::Unknown;
  return false;
}

bool read_port(Cpu& cpu, uint16_t port, unsigned size, uint32_t& value) {
  if (!port_allowed(cpu, port, size)) return false;
  return cpu.system.bus.in(cpu.id, port, size, value) || unknown_port(cpu, "a read", port, size);
}
bool write_port(Cpu& cpu, uint16_t port, unsigned size, uint32_t value) {
  if (!port_allowed(cpu, port, size)) return false;
  return cpu.system.bus.out(cpu.id, port, size, value) || unknown_port(cpu, "a write", port, size);
}

uint16_t port_of(const Cpu& cpu, const Op* op) {
  return op->src != 0 ? static_cast<uint16_t>(op->immediate) : get<uint16_t>(cpu, kRdx);
}

const Op* in(Cpu& cpu, const Op* op) {
  uint32_t value;
  if (!read_port(cpu, port_of(cpu, op), op->extra, value)) return stop(cpu, op);
  if (op->extra == 1) set<uint8_t>(cpu, kRax, static_cast<uint8_t>(value));
  if (op->extra == 2) set<uint16_t>(cpu, kRax, static_cast<uint16_t>(value));
  if (op->extra == 4) set<uint32_t>(cpu, kRax, value);
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

const Op* out(Cpu& cpu, const Op* op) {
  const uint64_t mask = op->extra == 4 ? 0xffffffff : (1u << (8 * op->extra)) - 1;
  if (!write_port(cpu, port_of(cpu, op), op->extra, static_cast<uint32_t>(cpu.gpr(kRax) & mask)))
    return stop(cpu, op);
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

// INS and OUTS: each element counts as one instruction, so that a repeated one can be interrupted at any
// element.
template <bool input>
const Op* port_string(Cpu& cpu, const Op* op) {
  const uint64_t mask = (op->bits & Op::kAddress16)   ? 0xffff
                        : (op->bits & Op::kAddress32) ? 0xffffffff
                                                      : ~uint64_t{0};
  const bool repeats = (op->bits & (Op::kRep | Op::kRepne)) != 0;
  // Checked even if the count is zero.
  if (!port_allowed(cpu, get<uint16_t>(cpu, kRdx), op->extra)) return stop(cpu, op);
  if (repeats && (cpu.gpr(kRcx) & mask) == 0) return leave(cpu, next_rip(cpu, op));
  const unsigned size = op->extra;
  const unsigned pointer = input ? kRdi : kRsi;
  const uint64_t offset = cpu.gpr(pointer) & mask;
  uint64_t address = offset;
  uint32_t value = 0;
  if constexpr (input) {
    if (!cpu.mode.is_long() && !segment_address(cpu, kEs, offset, size, AccessKind::Write, address))
      return stop(cpu, op);
    if (!check_writable(cpu, address, size)) return stop(cpu, op);
    if (!read_port(cpu, get<uint16_t>(cpu, kRdx), size, value)) return stop(cpu, op);
    std::memcpy(cpu.buffer.data(), &value, 4);
    if (!store_slow(cpu, op, address, size)) return stop(cpu, op);
  } else {
    if (op->segment < kLegacySegments)
      address += cpu.segment_base[op->segment];
    else if (legacy_address(cpu, op, size, AccessKind::Read, offset))
      address = cpu.linear;
    else
      return stop(cpu, op);
    if (!load_slow(cpu, op, address, size)) return stop(cpu, op);
    std::memcpy(&value, cpu.buffer.data(), size);
    if (!write_port(cpu, get<uint16_t>(cpu, kRdx), size, value)) return stop(cpu, op);
  }
  const auto add = [&](unsigned reg, uint64_t amount) {
    const uint64_t sum = (cpu.gpr(reg) + amount) & mask;
    cpu.gpr(reg) = mask == 0xffff ? (cpu.gpr(reg) & ~mask) | sum : sum;
  };
  add(pointer, (cpu.regs.rflags & flag::kDirection) ? -uint64_t{size} : size);
  if (!repeats) return leave_for_interrupts(cpu, next_rip(cpu, op));
  add(kRcx, ~uint64_t{0});
  return leave_for_interrupts(cpu, cpu.gpr(kRip) + op->offset);
}

Handler select_port(Instruction& in, Op& op, bool input) {
  const unsigned data = input ? 0 : 1;
  op.extra = static_cast<uint8_t>(in.size(data));
  op.src = in.is_immediate(1 - data) ? 1 : 0;
  if (op.src != 0) op.immediate = in.immediate(1 - data) & 0xff;
  return input ? vm::in : out;
}

Handler select_port_string(Instruction& in, Op& op, bool input, uint8_t size) {
  op.extra = size;
  in.stands_alone = true;
  return input ? port_string<true> : port_string<false>;
}

Handler pick(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_IN:
      return select_port(in, op, true);
    case ZYDIS_MNEMONIC_OUT:
      return select_port(in, op, false);
    case ZYDIS_MNEMONIC_INSB:
      return select_port_string(in, op, true, 1);
    case ZYDIS_MNEMONIC_INSW:
      return select_port_string(in, op, true, 2);
    case ZYDIS_MNEMONIC_INSD:
      return select_port_string(in, op, true, 4);
    case ZYDIS_MNEMONIC_OUTSB:
      return select_port_string(in, op, false, 1);
    case ZYDIS_MNEMONIC_OUTSW:
      return select_port_string(in, op, false, 2);
    case ZYDIS_MNEMONIC_OUTSD:
      return select_port_string(in, op, false, 4);
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_ports(Instruction& in, Op& op) {
  const Handler handler = pick(in, op);
  if (handler != nullptr) in.ends_block = true;
  return handler;
}

}  // namespace slalom::vm
