// Shared by the handlers of XMM and MMX registers: registers as host vectors, 16-byte operands, and the
// checks that come first.
//
// Integer and bitwise operations use the host's SSE2 instructions, which every x86-64 host has and which are
// exact. Everything that depends on MXCSR goes through sse_host.h.
#pragma once

#include <emmintrin.h>

#include "vm/cpu/handler.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {

// The data of a 16-byte access.
struct Bytes16 {
  uint64_t low = 0;
  uint64_t high = 0;
};

inline __m128i get_xmm(const Cpu& cpu, unsigned reg) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(&cpu.regs.xmm[reg]));
}
inline void set_xmm(Cpu& cpu, unsigned reg, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&cpu.regs.xmm[reg]), value);
}
inline __m128i low_only(uint64_t value) {
  return _mm_cvtsi64_si128(static_cast<int64_t>(value));
}
inline uint64_t low_of(__m128i value) {
  return static_cast<uint64_t>(_mm_cvtsi128_si64(value));
}

// Returns false if the instruction faults.
inline bool sse_ready(Cpu& cpu) {
  if (__builtin_expect((cpu.regs.cr0 & (cr0::kEm | cr0::kTs)) == 0 && (cpu.regs.cr4 & cr4::kOsfxsr) != 0, 1))
    return true;
  const bool undefined = (cpu.regs.cr0 & cr0::kEm) != 0 || (cpu.regs.cr4 & cr4::kOsfxsr) == 0;
  return cpu.raise(undefined ? kInvalidOpcode : kNoDevice);
}

// In the x87 status word: an unmasked exception is pending.
inline constexpr uint16_t kX87Pending = 0x80;

inline bool mmx_ready(Cpu& cpu) {
  if ((cpu.regs.cr0 & cr0::kEm) != 0) return cpu.raise(kInvalidOpcode);
  if ((cpu.regs.cr0 & cr0::kTs) != 0) return cpu.raise(kNoDevice);
  if ((cpu.regs.fpu.status & kX87Pending) != 0) return cpu.raise(kX87);
  return true;
}

// Every MMX instruction marks the whole x87 stack as full, with its top at register 0.
inline void enter_mmx(Cpu& cpu) {
  cpu.regs.fpu.valid = 0xff;
  cpu.regs.fpu.status &= static_cast<uint16_t>(~0x3800);
}
inline uint64_t get_mmx(const Cpu& cpu, unsigned reg) {
  return cpu.regs.fpu.registers[reg].significand;
}
inline void set_mmx(Cpu& cpu, unsigned reg, uint64_t value) {
  cpu.regs.fpu.registers[reg] = {value, 0xffff};
}

// --- memory operands ---

enum class Alignment : uint8_t { Any, Required };

template <AccessKind kind, Alignment alignment>
inline bool vector_address(Cpu& cpu, const Op* op, unsigned size, uint64_t& address) {
  if (!address_of<kind>(cpu, op, size, address)) return false;
  if constexpr (alignment == Alignment::Required)
    if (__builtin_expect((address & 15) != 0, 0)) return cpu.raise(kProtection, 0);
  return true;
}

template <Alignment alignment>
inline bool load_vector(Cpu& cpu, const Op* op, __m128i& value) {
  uint64_t address;
  Bytes16 bytes;
  if (!vector_address<AccessKind::Read, alignment>(cpu, op, 16, address) || !load(cpu, op, address, bytes))
    return false;
  value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&bytes));
  return true;
}

template <Alignment alignment>
inline bool store_vector(Cpu& cpu, const Op* op, __m128i value) {
  uint64_t address;
  Bytes16 bytes;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&bytes), value);
  return vector_address<AccessKind::Write, alignment>(cpu, op, 16, address) && store(cpu, op, address, bytes);
}

// MASKMOVDQU and MASKMOVQ: store to DS:DI the bytes of `data` whose byte in `mask` is negative. Nothing is
// written before all writes are known to be allowed. Sets the destination, which no visible operand names.
void take_masked_destination(const Instruction& in, Op& op);
bool store_selected_bytes(Cpu& cpu, const Op* op, unsigned size, Bytes16 data, Bytes16 mask);

// Loads the second operand of an XMM instruction into the low part of a vector: a register, or `bytes` bytes
// of memory (16 bytes must be aligned).
template <unsigned bytes, bool memory>
inline bool load_xmm_source(Cpu& cpu, const Op* op, __m128i& value) {
  if constexpr (!memory) {
    value = get_xmm(cpu, op->src);
    return true;
  } else if constexpr (bytes == 16) {
    return load_vector<Alignment::Required>(cpu, op, value);
  } else if constexpr (bytes == 8) {
    uint64_t low;
    if (!load_operand(cpu, op, low)) return false;
    value = low_only(low);
    return true;
  } else {
    static_assert(bytes == 4);
    uint32_t low;
    if (!load_operand(cpu, op, low)) return false;
    value = low_only(low);
    return true;
  }
}

inline bool is_xmm(const Instruction& in, unsigned i) {
  return i < in.visible() && in.is_register(i) && ZydisRegisterGetClass(in.reg(i)) == ZYDIS_REGCLASS_XMM;
}
inline bool is_mmx(const Instruction& in, unsigned i) {
  return i < in.visible() && in.is_register(i) && ZydisRegisterGetClass(in.reg(i)) == ZYDIS_REGCLASS_MMX;
}

// The usual operands: the first is the destination, the second a register or memory.
inline void take_operands(const Instruction& in, Op& op) {
  if (in.visible() > 0 && in.is_register(0)) op.dst = in.register_number(0);
  if (in.visible() > 1 && in.is_register(1)) op.src = in.register_number(1);
  if (in.visible() > 2 && in.is_immediate(2)) op.immediate = in.immediate(2);
}

// The families of select_sse. Each returns nullptr for instructions of other families.
Handler select_sse_move(Instruction& in, Op& op);  // also instructions with fewer than two operands
Handler select_sse_integer(Instruction& in, Op& op);
Handler select_sse_shuffle(Instruction& in, Op& op);
Handler select_sse_arithmetic(Instruction& in, Op& op);
Handler select_sse_compare(Instruction& in, Op& op);
Handler select_sse_convert(Instruction& in, Op& op);
Handler select_sse_approximate(Instruction& in, Op& op);
Handler select_fxsave(Instruction& in, Op& op);

}  // namespace slalom::vm
