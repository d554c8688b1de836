// The x87 stack and its exceptions, for all x87 handlers.
//
// Registers are numbered from the top of the stack, st(0) to st(7). Fpu stores them by physical number, which
// MMX and the tags use. Exceptions are delivered late: an operation only sets their flags, and the next
// waiting instruction faults.
#pragma once

#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {

namespace x87 {

// Bits of the status word. The first six have their masks at the same positions in the control word.
inline constexpr uint16_t kInvalid = 1, kDenormal = 2, kDivide = 4, kOverflow = 8, kUnderflow = 16,
                          kPrecision = 32, kStackFault = 64, kPending = kX87Pending, kBusy = 0x8000;
inline constexpr uint16_t kC0 = 0x100, kC1 = 0x200, kC2 = 0x400, kC3 = 0x4000;
inline constexpr uint16_t kCodes = kC0 | kC1 | kC2 | kC3;
inline constexpr uint16_t kExceptions = 0x3f, kTop = 0x3800;
inline constexpr uint16_t kOfOperands = kInvalid | kDenormal | kDivide;
inline constexpr uint16_t kControlFixed = 0x40, kControlUsed = 0x1f3f;

inline constexpr X87Register kIndefinite{0xc000000000000000, 0xffff};
inline constexpr X87Register kZero{0, 0};

inline bool is_negative(const X87Register& r) {
  return (r.sign_exponent & 0x8000) != 0;
}
inline unsigned exponent(const X87Register& r) {
  return r.sign_exponent & 0x7fff;
}
inline bool is_nan(const X87Register& r) {
  return exponent(r) == 0x7fff && (r.significand << 1) != 0;
}
inline bool is_infinite(const X87Register& r) {
  return exponent(r) == 0x7fff && r.significand == uint64_t{1} << 63;
}
inline bool is_zero(const X87Register& r) {
  return exponent(r) == 0 && r.significand == 0;
}
inline bool is_denormal(const X87Register& r) {
  return exponent(r) == 0 && r.significand != 0;
}
// Encodings that no operation produces. They are invalid operands.
inline bool is_unsupported(const X87Register& r) {
  return exponent(r) != 0 && (r.significand >> 63) == 0;
}

}  // namespace x87

// --- the stack ---

inline unsigned top_of(const Fpu& fpu) {
  return (fpu.status >> 11) & 7;
}
inline unsigned physical(const Fpu& fpu, unsigned i) {
  return (top_of(fpu) + i) & 7;
}
inline void set_top(Fpu& fpu, unsigned top) {
  fpu.status = static_cast<uint16_t>((fpu.status & ~x87::kTop) | ((top & 7) << 11));
}
inline bool is_empty(const Fpu& fpu, unsigned i) {
  return ((fpu.valid >> physical(fpu, i)) & 1) == 0;
}
inline const X87Register& st(const Fpu& fpu, unsigned i) {
  return fpu.registers[physical(fpu, i)];
}
inline void set_st(Fpu& fpu, unsigned i, const X87Register& value) {
  fpu.registers[physical(fpu, i)] = value;
  fpu.valid = static_cast<uint8_t>(fpu.valid | 1u << physical(fpu, i));
}
inline void free_st(Fpu& fpu, unsigned i) {
  fpu.valid = static_cast<uint8_t>(fpu.valid & ~(1u << physical(fpu, i)));
}
inline void pop(Fpu& fpu) {
  free_st(fpu, 0);
  set_top(fpu, top_of(fpu) + 1);
}
inline void push(Fpu& fpu, const X87Register& value) {
  set_top(fpu, top_of(fpu) - 1);
  set_st(fpu, 0, value);
}

// --- exceptions ---

// Call this after a change of status or control: updates whether an exception is pending.
inline void note_pending(Fpu& fpu) {
  const bool pending = (fpu.status & ~fpu.control & x87::kExceptions) != 0;
  fpu.status = static_cast<uint16_t>((fpu.status & ~(x87::kPending | x87::kBusy)) |
                                     (pending ? x87::kPending | x87::kBusy : 0));
}

inline void change_codes(Fpu& fpu, uint16_t which, uint16_t value) {
  fpu.status = static_cast<uint16_t>((fpu.status & ~which) | (value & which));
}

// Sets the flags of what an operation raised (exceptions and C1). Returns false if an operand caused an
// unmasked exception; then the operation must change nothing else.
inline bool raise_x87(Fpu& fpu, uint16_t raised) {
  const bool goes_on = (raised & ~fpu.control & x87::kOfOperands) == 0;
  if (!goes_on) raised &= static_cast<uint16_t>(~(x87::kOverflow | x87::kUnderflow | x87::kPrecision));
  change_codes(fpu, x87::kC1, raised);
  fpu.status = static_cast<uint16_t>(fpu.status | (raised & (x87::kExceptions | x87::kStackFault)));
  note_pending(fpu);
  return goes_on;
}
inline bool raise_underflow_of_stack(Fpu& fpu) {
  return raise_x87(fpu, x87::kInvalid | x87::kStackFault);
}
inline bool raise_overflow_of_stack(Fpu& fpu) {
  return raise_x87(fpu, x87::kInvalid | x87::kStackFault | x87::kC1);
}

// Pushes a value, or records a stack overflow. Returns false if nothing was pushed.
inline bool push_checked(Fpu& fpu, const X87Register& value) {
  if (is_empty(fpu, 7)) {
    push(fpu, value);
    return true;
  }
  if (!raise_overflow_of_stack(fpu)) return false;
  push(fpu, x87::kIndefinite);
  return true;
}

// --- before and after ---

// For an instruction that does not wait. Returns false if it faults.
inline bool x87_available(Cpu& cpu) {
  if (__builtin_expect((cpu.regs.cr0 & (cr0::kEm | cr0::kTs)) == 0, 1)) return true;
  return cpu.raise(kNoDevice);
}
// For a waiting instruction. Without CR0.NE a PC would raise interrupt 13 instead; no current kernel uses
// that, so this raises #MF in both cases (docs/x86.md).
inline bool x87_ready(Cpu& cpu) {
  if (!x87_available(cpu)) return false;
  if (__builtin_expect((cpu.regs.fpu.status & x87::kPending) == 0, 1)) return true;
  return cpu.raise(kX87);
}

// Continues after an instruction that FSTENV and FXSAVE may report. As on Intel's CPUs, its address is always
// recorded, but its opcode (in op->immediate) and operand only if it raised an unmasked exception. The
// instruction can no longer fault, and no exception was pending before it.
inline const Op* done(Cpu& cpu, const Op* op) {
  cpu.regs.fpu.instruction = cpu.regs.gpr[kRip] + op->offset;
  if (__builtin_expect((cpu.regs.fpu.status & x87::kPending) != 0, 0)) {
    cpu.regs.fpu.opcode = static_cast<uint16_t>(op->immediate);
    cpu.regs.fpu.operand = 0;
  }
  NEXT;
}
inline const Op* done_with_memory(Cpu& cpu, const Op* op) {
  cpu.regs.fpu.instruction = cpu.regs.gpr[kRip] + op->offset;
  if (__builtin_expect((cpu.regs.fpu.status & x87::kPending) != 0, 0)) {
    cpu.regs.fpu.opcode = static_cast<uint16_t>(op->immediate);
    cpu.regs.fpu.operand = offset_of(cpu, op);
  }
  NEXT;
}

// The families of select_x87. Each returns nullptr for instructions of other families. They select by opcode
// and ModRM, which x87 uses more regularly than names.
struct X87Opcode {
  uint8_t number;  // 0 to 7 for D8 to DF
  bool memory;
  uint8_t reg;
  uint8_t rm;
};
Handler select_x87_arithmetic(const X87Opcode& code, Op& op);
Handler select_x87_compare(const X87Opcode& code, Op& op);
Handler select_x87_move(const X87Opcode& code, Op& op);
Handler select_x87_control(const X87Opcode& code, Instruction& in, Op& op);
Handler select_fwait();
Handler select_x87_remainder(const X87Opcode& code, Op& op);
Handler select_x87_transcendental(const X87Opcode& code, Op& op);

}  // namespace slalom::vm
