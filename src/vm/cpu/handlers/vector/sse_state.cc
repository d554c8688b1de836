// FXSAVE and FXRSTOR, LDMXCSR and STMXCSR.
#include <array>

#include "vm/cpu/handlers/vector/sse_host.h"
#include "vm/cpu/handlers/x87/x87.h"

namespace slalom::vm {
namespace {

// The area up to the end of XMM15. The rest, up to 512 bytes, is checked but never accessed.
constexpr unsigned kAreaSize = 512, kChunks = 26, kFirstX87 = 2, kFirstXmm = 10;
using Area = std::array<Bytes16, kChunks>;

// Bits of Op::extra.
constexpr uint8_t kWide = 1;  // 64-bit addresses of instruction and operand
constexpr uint8_t kLong = 2;  // 64-bit code: 16 XMM registers

unsigned chunks_of(const Op* op) {
  return kFirstXmm + ((op->extra & kLong) != 0 ? 16 : 8);
}

template <AccessKind kind>
bool area_address(Cpu& cpu, const Op* op, uint64_t& address) {
  return x87_available(cpu) && vector_address<kind, Alignment::Required>(cpu, op, kAreaSize, address);
}

const Op* fxsave(Cpu& cpu, const Op* op) {
  uint64_t address;
  if (!area_address<AccessKind::Write>(cpu, op, address)) return stop(cpu, op);
  const Registers& regs = cpu.regs;
  const Fpu& fpu = regs.fpu;
  const uint64_t addresses = (op->extra & kWide) != 0 ? ~uint64_t{0} : 0xffffffff;
  Area area;
  area[0] = {
      fpu.control | uint64_t{fpu.status} << 16 | uint64_t{fpu.valid} << 32 | uint64_t{fpu.opcode} << 48,
      fpu.instruction & addresses};
  area[1] = {fpu.operand & addresses, regs.mxcsr | uint64_t{mxcsr::kValid} << 32};
  for (unsigned i = 0; i < 8; ++i) area[kFirstX87 + i] = {st(fpu, i).significand, st(fpu, i).sign_exponent};
  for (unsigned i = 0; i < 16; ++i) area[kFirstXmm + i] = {regs.xmm[i].low, regs.xmm[i].high};
  if (!check_writable(cpu, address, kAreaSize)) return stop(cpu, op);
  for (unsigned i = 0; i < chunks_of(op); ++i)
    if (!store(cpu, op, address + 16 * i, area[i])) return stop(cpu, op);
  NEXT;
}

const Op* fxrstor(Cpu& cpu, const Op* op) {
  uint64_t address;
  if (!area_address<AccessKind::Read>(cpu, op, address)) return stop(cpu, op);
  Area area;
  for (unsigned i = 0; i < chunks_of(op); ++i)
    if (!load(cpu, op, address + 16 * i, area[i])) return stop(cpu, op);
  const auto csr = static_cast<uint32_t>(area[1].high);
  if ((csr & ~mxcsr::kValid) != 0) return raise(cpu, op, kProtection, 0);
  Registers& regs = cpu.regs;
  Fpu& fpu = regs.fpu;
  const uint64_t addresses = (op->extra & kWide) != 0 ? ~uint64_t{0} : 0xffffffff;
  regs.mxcsr = csr;
  fpu.control = static_cast<uint16_t>((area[0].low & x87::kControlUsed) | x87::kControlFixed);
  fpu.status = static_cast<uint16_t>(area[0].low >> 16);
  fpu.valid = static_cast<uint8_t>(area[0].low >> 32);
  fpu.opcode = static_cast<uint16_t>((area[0].low >> 48) & 0x7ff);
  fpu.instruction = area[0].high & addresses;
  fpu.operand = area[1].low & addresses;
  for (unsigned i = 0; i < 8; ++i)
    fpu.registers[physical(fpu, i)] = {area[kFirstX87 + i].low,
                                       static_cast<uint16_t>(area[kFirstX87 + i].high)};
  for (unsigned i = 0; i < chunks_of(op) - kFirstXmm; ++i)
    regs.xmm[i] = {area[kFirstXmm + i].low, area[kFirstXmm + i].high};
  note_pending(fpu);
  NEXT;
}

const Op* ldmxcsr(Cpu& cpu, const Op* op) {
  uint32_t value;
  if (!sse_ready(cpu) || !load_operand(cpu, op, value)) return stop(cpu, op);
  if ((value & ~mxcsr::kValid) != 0) return raise(cpu, op, kProtection, 0);
  cpu.regs.mxcsr = value;
  NEXT;
}

const Op* stmxcsr(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu) || !store_operand(cpu, op, cpu.regs.mxcsr)) return stop(cpu, op);
  NEXT;
}

}  // namespace

Handler select_fxsave(Instruction& in, Op& op) {
  op.extra = in.mode.is_long() ? kLong : 0;
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_FXSAVE64:
      op.extra |= kWide;
      [[fallthrough]];
    case ZYDIS_MNEMONIC_FXSAVE:
      return fxsave;
    case ZYDIS_MNEMONIC_FXRSTOR64:
      op.extra |= kWide;
      [[fallthrough]];
    case ZYDIS_MNEMONIC_FXRSTOR:
      return fxrstor;
    case ZYDIS_MNEMONIC_LDMXCSR:
      return ldmxcsr;
    case ZYDIS_MNEMONIC_STMXCSR:
      return stmxcsr;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
