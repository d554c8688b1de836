// Registers: everything that a guest can observe of one CPU.
//
// Valid between instructions only. While a block runs, the instruction pointer and the flags are elsewhere
// (see cpu/cpu.h); Cpu::settle() stores them here.
#pragma once

#include <array>
#include <cstdint>

#include "vm/state.h"

namespace slalom::vm {

enum Gpr : uint8_t { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi };
// Two additional entries of the register file make every address the same sum: the start of the running
// block, and a zero for "no base" and "no index".
inline constexpr uint8_t kRip = 16;
inline constexpr uint8_t kZero = 17;

enum SegmentName : uint8_t { kEs, kCs, kSs, kDs, kFs, kGs };

namespace flag {
inline constexpr uint64_t kCarry = 1 << 0, kParity = 1 << 2, kAdjust = 1 << 4, kZeroFlag = 1 << 6,
                          kSign = 1 << 7, kTrap = 1 << 8, kInterrupt = 1 << 9, kDirection = 1 << 10,
                          kOverflow = 1 << 11, kIopl = 3 << 12, kNested = 1 << 14, kResume = 1 << 16,
                          kVm86 = 1 << 17, kAlignment = 1 << 18, kVif = 1 << 19, kVip = 1 << 20,
                          kId = 1 << 21;
inline constexpr uint64_t kFixed = 1 << 1;
inline constexpr uint64_t kArithmetic = kCarry | kParity | kAdjust | kZeroFlag | kSign | kOverflow;
}  // namespace flag

namespace cr0 {
inline constexpr uint64_t kPe = 1 << 0, kMp = 1 << 1, kEm = 1 << 2, kTs = 1 << 3, kEt = 1 << 4, kNe = 1 << 5,
                          kWp = 1 << 16, kAm = 1 << 18, kNw = 1 << 29, kCd = 1 << 30, kPg = uint64_t{1} << 31;
}
namespace cr4 {
inline constexpr uint64_t kVme = 1 << 0, kPvi = 1 << 1, kTsd = 1 << 2, kDe = 1 << 3, kPse = 1 << 4,
                          kPae = 1 << 5, kMce = 1 << 6, kPge = 1 << 7, kPce = 1 << 8, kOsfxsr = 1 << 9,
                          kOsxmmexcpt = 1 << 10;
}
namespace efer {
inline constexpr uint64_t kSce = 1 << 0, kLme = 1 << 8, kLma = 1 << 10, kNxe = 1 << 11;
}

// A segment register with its hidden part. `attributes` are bits 8..15 and 20..23 of the descriptor's second
// word, packed: type 0-3, s 4, dpl 5-6, present 7, avl 8, long 9, big 10, granularity 11.
struct Segment {
  uint16_t selector = 0;
  uint16_t attributes = 0;
  uint32_t limit = 0;  // in bytes
  uint64_t base = 0;

  unsigned type() const { return attributes & 15; }
  bool is_system() const { return (attributes & 16) == 0; }
  unsigned dpl() const { return (attributes >> 5) & 3; }
  bool present() const { return (attributes & 0x80) != 0; }
  bool is_long() const { return (attributes & 0x200) != 0; }
  bool big() const { return (attributes & 0x400) != 0; }
  bool is_code() const { return !is_system() && (type() & 8) != 0; }
  bool writable() const { return !is_system() && (type() & 10) == 2; }
  bool readable() const { return !is_system() && (type() & 10) != 8; }
  bool conforming() const { return is_code() && (type() & 4) != 0; }
  bool expands_down() const { return !is_system() && (type() & 12) == 4; }

  bool operator==(const Segment&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.selector, s.attributes, s.limit, s.base);
  }
};

struct TableRegister {
  uint64_t base = 0;
  uint16_t limit = 0xffff;

  bool operator==(const TableRegister&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.base, s.limit);
  }
};

struct Xmm {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const Xmm&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.low, s.high);
  }
};

// One x87 register: a 64-bit significand, then sign and exponent. MMX registers are the significands.
struct X87Register {
  uint64_t significand = 0;
  uint16_t sign_exponent = 0;

  bool operator==(const X87Register&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.significand, s.sign_exponent);
  }
};

struct Fpu {
  uint16_t control = 0x40;
  uint16_t status = 0;  // top of stack in bits 11-13
  uint8_t valid = 0;    // one bit for each physical register that is not empty (FXSAVE's abridged tag)
  uint16_t opcode = 0;
  uint64_t instruction = 0;  // addresses of the last instruction and its operand
  uint64_t operand = 0;
  std::array<X87Register, 8> registers;  // physical registers, not relative to the top

  bool operator==(const Fpu&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.control, s.status, s.valid, s.opcode, s.instruction, s.operand, s.registers);
  }
};

enum class Activity : uint8_t { Running, Halted, WaitForSipi, Shutdown };

struct Registers {
  std::array<uint64_t, 18> gpr{};  // 16 general registers, rip, zero
  uint64_t rflags = flag::kFixed;
  std::array<Segment, 6> segments;  // by SegmentName
  Segment ldtr;
  Segment tr;
  TableRegister gdtr;
  TableRegister idtr;
  uint64_t cr0 = cr0::kEt | cr0::kNw | cr0::kCd;
  uint64_t cr2 = 0;
  uint64_t cr3 = 0;
  uint64_t cr4 = 0;
  uint64_t efer = 0;
  std::array<uint64_t, 4> pdptes{};  // loaded with CR3 in three-level paging
  std::array<uint64_t, 8> dr{};
  uint64_t star = 0, lstar = 0, cstar = 0, sfmask = 0;
  uint64_t kernel_gs_base = 0;
  uint64_t sysenter_cs = 0, sysenter_esp = 0, sysenter_eip = 0;
  uint64_t pat = 0x0007040600070406;
  uint64_t tsc_offset = 0;
  uint64_t tsc_aux = 0;
  uint32_t mxcsr = 0x1f80;
  Fpu fpu;
  std::array<Xmm, 16> xmm;
  Activity activity = Activity::Running;
  bool interrupt_shadow = false;  // interrupts are delivered only after the next instruction
  bool nmi_blocked = false;
  uint64_t retired = 0;  // instructions; each step of a repeated one counts
  // The address of the last failed exchange, and how many exchanges in a row have failed there. They decide
  // when turns end.
  uint64_t failed_exchange = 0;
  uint32_t failed_exchanges = 0;

  bool operator==(const Registers&) const = default;
  template <class Self, class Visitor>
  static void fields(Self& s, Visitor& v) {
    v(s.gpr, s.rflags, s.segments, s.ldtr, s.tr, s.gdtr, s.idtr, s.cr0, s.cr2, s.cr3, s.cr4, s.efer, s.pdptes,
      s.dr, s.star, s.lstar, s.cstar, s.sfmask, s.kernel_gs_base, s.sysenter_cs, s.sysenter_esp,
      s.sysenter_eip, s.pat, s.tsc_offset, s.tsc_aux, s.mxcsr, s.fpu, s.xmm, s.activity, s.interrupt_shadow,
      s.nmi_blocked, s.retired, s.failed_exchange, s.failed_exchanges);
  }
};

}  // namespace slalom::vm
