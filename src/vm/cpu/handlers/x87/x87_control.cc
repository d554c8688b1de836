// The x87 control, status and environment: FLDCW, FSTSW, FSTENV, FSAVE and similar instructions.
//
// Code and data segments of the last instruction are not recorded. They read as zero, as on CPUs that report
// this in CPUID.
#include <array>

#include "vm/cpu/handlers/x87/x87.h"

namespace slalom::vm {
namespace {

void initialize(Fpu& fpu) {
  fpu.control = 0x37f;
  fpu.status = 0;
  fpu.valid = 0;
  fpu.opcode = 0;
  fpu.instruction = 0;
  fpu.operand = 0;
}

const Op* fninit(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu)) return stop(cpu, op);
  initialize(cpu.regs.fpu);
  NEXT;
}

const Op* fnclex(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu)) return stop(cpu, op);
  cpu.regs.fpu.status &= x87::kTop | x87::kCodes;
  NEXT;
}

// FNENI, FNDISI and FNSETPM only had a meaning on the 8087 and 80287.
const Op* nothing(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu)) return stop(cpu, op);
  NEXT;
}

const Op* fwait(Cpu& cpu, const Op* op) {
  constexpr uint64_t kBoth = cr0::kMp | cr0::kTs;
  if ((cpu.regs.cr0 & kBoth) == kBoth) return raise(cpu, op, kNoDevice);
  if ((cpu.regs.fpu.status & x87::kPending) != 0) return raise(cpu, op, kX87);
  NEXT;
}

void set_control(Fpu& fpu, uint64_t value) {
  fpu.control = static_cast<uint16_t>((value & x87::kControlUsed) | x87::kControlFixed);
}

const Op* fldcw(Cpu& cpu, const Op* op) {
  uint16_t value;
  if (!x87_ready(cpu) || !load_operand(cpu, op, value)) return stop(cpu, op);
  set_control(cpu.regs.fpu, value);
  note_pending(cpu.regs.fpu);
  NEXT;
}

const Op* fnstcw(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu) || !store_operand(cpu, op, cpu.regs.fpu.control)) return stop(cpu, op);
  NEXT;
}

const Op* fnstsw(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu) || !store_operand(cpu, op, cpu.regs.fpu.status)) return stop(cpu, op);
  NEXT;
}

const Op* fnstsw_ax(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu)) return stop(cpu, op);
  set<uint16_t>(cpu, kRax, cpu.regs.fpu.status);
  NEXT;
}

// --- the environment ---

// Two bits for each physical register: valid, zero, special or empty.
uint16_t full_tags(const Fpu& fpu) {
  unsigned tags = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const X87Register& r = fpu.registers[i];
    unsigned tag = 0;
    if (((fpu.valid >> i) & 1) == 0)
      tag = 3;
    else if (x87::is_zero(r))
      tag = 1;
    else if (x87::exponent(r) == 0 || x87::exponent(r) == 0x7fff || x87::is_unsupported(r))
      tag = 2;
    tags |= tag << (2 * i);
  }
  return static_cast<uint16_t>(tags);
}

void set_tags(Fpu& fpu, uint64_t tags) {
  fpu.valid = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (((tags >> (2 * i)) & 3) != 3) fpu.valid = static_cast<uint8_t>(fpu.valid | 1u << i);
}

// Seven fields of two or four bytes. Real mode has a different layout.
using Environment = std::array<uint32_t, 7>;

bool is_real(const Cpu& cpu) {
  return !cpu.protected_mode() || cpu.vm86();
}

template <class Field>
Environment environment(const Cpu& cpu) {
  const Fpu& fpu = cpu.regs.fpu;
  const auto instruction = static_cast<uint32_t>(fpu.instruction),
             operand = static_cast<uint32_t>(fpu.operand);
  constexpr uint32_t kUnused = sizeof(Field) == 4 ? 0xffff0000 : 0;
  Environment e{fpu.control | kUnused, fpu.status | kUnused, full_tags(fpu) | kUnused};
  if (is_real(cpu)) {
    // Position of the upper bits of an address.
    const uint32_t high = sizeof(Field) == 4 ? 0x0ffff000 : 0xf000;
    e[3] = (instruction & 0xffff) | kUnused;
    e[4] = ((instruction >> 4) & high) | fpu.opcode;
    e[5] = (operand & 0xffff) | kUnused;
    e[6] = (operand >> 4) & high;
  } else {
    e[3] = instruction;
    e[4] = sizeof(Field) == 4 ? uint32_t{fpu.opcode} << 16 : 0;
    e[5] = operand;
    e[6] = kUnused;
  }
  return e;
}

template <class Field>
void set_environment(Cpu& cpu, const Environment& e) {
  Fpu& fpu = cpu.regs.fpu;
  set_control(fpu, e[0]);
  fpu.status = static_cast<uint16_t>(e[1]);
  set_tags(fpu, e[2]);
  if (is_real(cpu)) {
    const uint32_t high = sizeof(Field) == 4 ? 0x0ffff000 : 0xf000;
    fpu.instruction = (e[3] & 0xffff) | (e[4] & high) << 4;
    fpu.opcode = e[4] & 0x7ff;
    fpu.operand = (e[5] & 0xffff) | (e[6] & high) << 4;
  } else {
    fpu.instruction = e[3];
    fpu.operand = e[5];
    if (sizeof(Field) == 4) fpu.opcode = (e[4] >> 16) & 0x7ff;
  }
  note_pending(fpu);
}

template <class Field>
bool store_environment(Cpu& cpu, const Op* op, uint64_t address, const Environment& e) {
  for (const uint32_t field : e) {
    if (!store(cpu, op, address, static_cast<Field>(field))) return false;
    address += sizeof(Field);
  }
  return true;
}

template <class Field>
bool load_environment(Cpu& cpu, const Op* op, uint64_t address, Environment& e) {
  for (uint32_t& field : e) {
    Field value;
    if (!load(cpu, op, address, value)) return false;
    field = value;
    address += sizeof(Field);
  }
  return true;
}

template <class Field>
inline constexpr unsigned kEnvironmentSize = 7 * sizeof(Field);
constexpr unsigned kRegisterSize = 10, kRegistersSize = 80;

template <class Field>
const Op* fnstenv(Cpu& cpu, const Op* op) {
  uint64_t address;
  if (!x87_available(cpu) || !address_of<AccessKind::Write>(cpu, op, kEnvironmentSize<Field>, address) ||
      !check_writable(cpu, address, kEnvironmentSize<Field>) ||
      !store_environment<Field>(cpu, op, address, environment<Field>(cpu)))
    return stop(cpu, op);
  cpu.regs.fpu.control |= x87::kExceptions;
  note_pending(cpu.regs.fpu);
  NEXT;
}

template <class Field>
const Op* fldenv(Cpu& cpu, const Op* op) {
  uint64_t address;
  Environment e;
  if (!x87_ready(cpu) || !address_of<AccessKind::Read>(cpu, op, kEnvironmentSize<Field>, address) ||
      !load_environment<Field>(cpu, op, address, e))
    return stop(cpu, op);
  set_environment<Field>(cpu, e);
  NEXT;
}

struct Bytes10 {
  uint8_t at[10];
};

template <class Field>
bool save(Cpu& cpu, const Op* op) {
  constexpr unsigned kSize = kEnvironmentSize<Field> + kRegistersSize;
  uint64_t address;
  if (!address_of<AccessKind::Write>(cpu, op, kSize, address) || !check_writable(cpu, address, kSize) ||
      !store_environment<Field>(cpu, op, address, environment<Field>(cpu)))
    return false;
  address += kEnvironmentSize<Field>;
  for (unsigned i = 0; i < 8; ++i, address += kRegisterSize) {
    Bytes10 bytes;
    const X87Register& value = st(cpu.regs.fpu, i);
    std::memcpy(bytes.at, &value.significand, 8);
    std::memcpy(bytes.at + 8, &value.sign_exponent, 2);
    if (!store(cpu, op, address, bytes)) return false;
  }
  initialize(cpu.regs.fpu);
  return true;
}

template <class Field>
bool restore(Cpu& cpu, const Op* op) {
  uint64_t address;
  Environment e;
  std::array<Bytes10, 8> registers;
  if (!address_of<AccessKind::Read>(cpu, op, kEnvironmentSize<Field> + kRegistersSize, address) ||
      !load_environment<Field>(cpu, op, address, e))
    return false;
  address += kEnvironmentSize<Field>;
  for (unsigned i = 0; i < 8; ++i)
    if (!load(cpu, op, address + i * kRegisterSize, registers[i])) return false;
  set_environment<Field>(cpu, e);
  Fpu& fpu = cpu.regs.fpu;
  for (unsigned i = 0; i < 8; ++i) {
    X87Register& value = fpu.registers[physical(fpu, i)];
    std::memcpy(&value.significand, registers[i].at, 8);
    std::memcpy(&value.sign_exponent, registers[i].at + 8, 2);
  }
  return true;
}

template <class Field>
const Op* fnsave(Cpu& cpu, const Op* op) {
  if (!x87_available(cpu) || !save<Field>(cpu, op)) return stop(cpu, op);
  NEXT;
}

template <class Field>
const Op* frstor(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu) || !restore<Field>(cpu, op)) return stop(cpu, op);
  NEXT;
}

}  // namespace

Handler select_x87_control(const X87Opcode& code, Instruction& in, Op&) {
  const bool narrow = in.operand_size() == 2;
  if (code.memory) {
    switch (code.number << 3 | code.reg) {
      case 014:
        return narrow ? fldenv<uint16_t> : fldenv<uint32_t>;
      case 015:
        return fldcw;
      case 016:
        return narrow ? fnstenv<uint16_t> : fnstenv<uint32_t>;
      case 017:
        return fnstcw;
      case 054:
        return narrow ? frstor<uint16_t> : frstor<uint32_t>;
      case 056:
        return narrow ? fnsave<uint16_t> : fnsave<uint32_t>;
      case 057:
        return fnstsw;
      default:
        return nullptr;
    }
  }
  switch (code.number << 6 | code.reg << 3 | code.rm) {
    case 0340:
    case 0341:
    case 0344:
      return nothing;
    case 0342:
      return fnclex;
    case 0343:
      return fninit;
    case 0740:
      return fnstsw_ax;
    default:
      return nullptr;
  }
}

Handler select_fwait() {
  return fwait;
}

}  // namespace slalom::vm
