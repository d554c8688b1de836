#include "vendor.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "favour.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {
namespace {

// These differences were observed on AMD's CPUs. Hosts of other vendors may need more.
struct Observation {
  const Case& one;
  const Decoded& in;
  const Outcome& guest;
  const Outcome& host;
  const std::vector<Difference>& found;

  ZydisMnemonic mnemonic() const { return in.info.mnemonic; }
  uint64_t rip() const { return one.state.rip; }
  bool in_64() const { return one.mode == Mode::k64; }
};

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// "memory" stands for any bytes of memory. Flags may differ only in RF, which faults set.
bool only(const Observation& s, std::initializer_list<std::string_view> names) {
  if (((s.guest.state.flags ^ s.host.state.flags) & ~flag::kResume) != 0) return false;
  return std::all_of(s.found.begin(), s.found.end(), [&](const Difference& one) {
    return among(one.what.starts_with("byte at") ? "memory" : one.what, names);
  });
}
// True if one side executed the instruction and the other did not, or if both failed in different ways, and
// nothing else differs.
bool only_ends_differ(const Observation& s) {
  return only(s, {"exception", "error code", "fault address", "rip", "flags"});
}
bool only_faults_differ(const Observation& s) {
  return only(s, {"exception", "error code", "fault address"});
}
bool same_memory_outside(const Observation& s, uint64_t start, uint64_t end) {
  for (uint64_t at = 0; at < kWritable; ++at)
    if (s.guest.data[at] != s.host.data[at] && (kData + at < start || kData + at >= end)) return false;
  return true;
}

bool has_prefix(const Decoded& in, uint8_t value) {
  for (unsigned i = 0; i < in.info.raw.prefix_count; ++i)
    if (in.info.raw.prefixes[i].value == value) return true;
  return false;
}
bool wide(const Decoded& in) {
  return in.info.raw.rex.W != 0;
}
const ZydisDecodedOperand& first(const Decoded& in) {
  return in.operands[0];
}
bool is_segment(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_SEGMENT;
}
std::string_view register_name(const ZydisDecodedOperand& operand) {
  const ZyanI8 id = ZydisRegisterGetId(operand.reg.value);
  return ZydisRegisterGetString(ZydisRegisterEncode(ZYDIS_REGCLASS_GPR64, static_cast<ZyanU8>(id)));
}

bool canonical(uint64_t address) {
  return address + (uint64_t{1} << 47) < uint64_t{1} << 48;
}
bool faulted_on_access(const Outcome& outcome) {
  return outcome.vector >= 12 && outcome.vector <= 14;
}
bool undone(const Observation& s, const Outcome& outcome) {
  return outcome.state.rip == s.rip();
}
// A breakpoint reports the address behind it; a page fault of the next instruction reports its own address.
bool fell_through(const Observation& s, const Outcome& outcome) {
  return outcome.state.rip - (s.rip() + s.one.length) <= 1;
}
bool fetch_failed(const Observation& s, const Outcome& outcome) {
  return outcome.vector == 14 && (outcome.error & 0x10) != 0 && undone(s, outcome);
}
// A page fault of the instruction's own access to [start, end).
bool access_failed(const Observation& s, const Outcome& outcome, uint64_t start, uint64_t end) {
  return outcome.vector == 14 && (outcome.error & 0x10) == 0 && undone(s, outcome) &&
         outcome.address >= start && outcome.address < end;
}

// INT1 reports the address behind it. On AMD's CPUs, at least under a hypervisor, it reports its own address.
bool trap_address(const Observation& s) {
  return s.mnemonic() == ZYDIS_MNEMONIC_INT1 && only(s, {"rip"}) && undone(s, s.host) &&
         s.guest.state.rip == s.rip() + s.one.length;
}

// 66 before a near branch in 64-bit code: Intel ignores it; AMD makes target, return address and displacement
// 16 bits wide.
bool short_branch(const Observation& s) {
  const auto type = s.in.info.meta.branch_type;
  if (!s.in_64() || !has_prefix(s.in, 0x66) || wide(s.in)) return false;
  if (type != ZYDIS_BRANCH_TYPE_NEAR && type != ZYDIS_BRANCH_TYPE_SHORT) return false;
  // The upper half of the displacement is then the next instruction, which may do anything.
  if (s.in.info.raw.imm[0].size == 32) {
    if (s.in.info.meta.category == ZYDIS_CATEGORY_COND_BR && fell_through(s, s.guest)) return true;
    if (fetch_failed(s, s.guest) && s.rip() + s.one.length - 2 <= kCode + kCodeSize) return true;
  }
  const bool stack = s.mnemonic() == ZYDIS_MNEMONIC_CALL || s.mnemonic() == ZYDIS_MNEMONIC_RET;
  if (!only_ends_differ(s) &&
      !(stack && only(s, {"exception", "error code", "fault address", "rip", "flags", "rsp", "memory"})))
    return false;
  // That address is not mapped. Before that, the stack or the operand may be unmapped on both sides.
  const bool taken = s.host.vector == 14 && s.host.state.rip >> 16 == 0;
  return taken || (undone(s, s.host) && undone(s, s.guest) && s.guest.vector == s.host.vector);
}

// F2 before LOOPE, F3 before LOOPNE: Intel ignores it; AMD uses the prefix as the condition.
bool loop_condition(const Observation& s) {
  uint8_t repeat = 0;
  for (unsigned i = 0; i < s.in.info.raw.prefix_count; ++i)
    if (const uint8_t value = s.in.info.raw.prefixes[i].value; value == 0xf2 || value == 0xf3) repeat = value;
  const bool reversed = (s.mnemonic() == ZYDIS_MNEMONIC_LOOPE && repeat == 0xf2) ||
                        (s.mnemonic() == ZYDIS_MNEMONIC_LOOPNE && repeat == 0xf3);
  return reversed && only_ends_differ(s) && fell_through(s, s.guest) != fell_through(s, s.host);
}

// Far pointers in memory with REX.W: Intel reads a 64-bit offset; AMD ignores W and reads a 32-bit offset, so
// that it also reads another selector.
bool far_pointer(const Observation& s) {
  if (!s.in_64() || !wide(s.in)) return false;
  const auto only_ends_and = [&](std::string_view a, std::string_view b, std::string_view c) {
    return only(s, {"exception", "error code", "fault address", "rip", "flags", a, b, c});
  };
  switch (s.mnemonic()) {
    case ZYDIS_MNEMONIC_LSS:
      return only_ends_and("ss", register_name(first(s.in)), "");
    case ZYDIS_MNEMONIC_LFS:
      return only_ends_and("fs", register_name(first(s.in)), "");
    case ZYDIS_MNEMONIC_LGS:
      return only_ends_and("gs", register_name(first(s.in)), "");
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
      return s.in.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && only_ends_and("cs", "rsp", "memory");
    default:
      return false;
  }
}

// 0F 0D with a register: a NOP on Intel's CPUs, no instruction on AMD's.
bool prefetch_of_register(const Observation& s) {
  return s.in.info.opcode_map == ZYDIS_OPCODE_MAP_0F && s.in.info.opcode == 0x0d &&
         s.in.info.raw.modrm.mod == 3 && s.host.vector == 6 && undone(s, s.host) && only_ends_differ(s);
}

// UD0 and UD1: Intel reads the bytes of their operands, which may be unmapped; AMD does not.
bool undefined_with_operands(const Observation& s) {
  return (s.mnemonic() == ZYDIS_MNEMONIC_UD0 || s.mnemonic() == ZYDIS_MNEMONIC_UD1) && s.host.vector == 6 &&
         fetch_failed(s, s.guest) && only_faults_differ(s);
}

// PAUSE with REX.B: AMD exchanges RAX and R8, as without F3.
bool pause_exchanges(const Observation& s) {
  if (s.mnemonic() != ZYDIS_MNEMONIC_PAUSE || s.in.info.raw.rex.B == 0 || !only(s, {"rax", "r8"}))
    return false;
  const uint64_t mask = wide(s.in) ? ~uint64_t{0} : has_prefix(s.in, 0x66) ? 0xffff : 0xffffffff;
  const auto& before = s.one.state.gpr;
  const auto& after = s.host.state.gpr;
  return ((after[kRax] ^ before[8]) & mask) == 0 && ((after[8] ^ before[kRax]) & mask) == 0;
}

// SHLD and SHRD of 16 bits by more than 16: the result is undefined. (Results in registers are never
// compared.)
bool long_double_shift(const Observation& s) {
  if (s.mnemonic() != ZYDIS_MNEMONIC_SHLD && s.mnemonic() != ZYDIS_MNEMONIC_SHRD) return false;
  if (first(s.in).type != ZYDIS_OPERAND_TYPE_MEMORY || first(s.in).size != 16) return false;
  const ZydisDecodedOperand& by = s.in.operands[2];
  const uint64_t count = by.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? by.imm.value.u : s.one.state.gpr[kRcx];
  if ((count & 31) <= 16) return false;
  const uint64_t start = effective_address(s.one, s.in, first(s.in));
  return std::all_of(s.found.begin(), s.found.end(),
                     [](const Difference& one) { return one.what.starts_with("byte at"); }) &&
         same_memory_outside(s, start, start + 2);
}

// PUSH of a segment register in 32-bit code: Intel writes 16 bits, AMD all 32.
bool push_of_segment(const Observation& s) {
  if (s.in_64() || s.mnemonic() != ZYDIS_MNEMONIC_PUSH || !is_segment(first(s.in)) ||
      s.in.info.operand_width != 32)
    return false;
  const uint64_t top = s.one.state.gpr[kRsp];
  if (access_failed(s, s.host, top - 2, top))
    return only(s, {"exception", "error code", "fault address", "rip", "flags", "rsp", "memory"}) &&
           same_memory_outside(s, top - 4, top - 2);
  for (uint64_t at = top - 2; at < top; ++at)
    if (at >= kData && at < kData + kWritable && s.host.data[at - kData] != 0) return false;
  return only(s, {"memory"}) && same_memory_outside(s, top - 2, top);
}

// POP of a segment register: Intel reads 16 bits; AMD reads the full width of the stack, which may be
// unmapped.
bool pop_of_segment(const Observation& s) {
  if (s.mnemonic() != ZYDIS_MNEMONIC_POP || !is_segment(first(s.in))) return false;
  const uint64_t top = s.one.state.gpr[kRsp];
  return access_failed(s, s.host, top + 2, top + s.in.info.operand_width / 8) &&
         only(s, {"exception", "error code", "fault address", "rip", "flags", "rsp",
                  ZydisRegisterGetString(first(s.in).reg.value)});
}

// MOVSXD of 16 bits: Intel reads 16 bits; AMD reads 32, which may be unmapped.
bool movsxd_of_word(const Observation& s) {
  if (s.mnemonic() != ZYDIS_MNEMONIC_MOVSXD || first(s.in).size != 16 || !s.in.has_memory()) return false;
  const uint64_t start = effective_address(s.one, s.in, s.in.operands[1]);
  return access_failed(s, s.host, start + 2, start + 4) &&
         only(s, {"exception", "error code", "fault address", "rip", "flags", register_name(first(s.in))});
}

// BOUND: Intel compares with the lower bound before it reads the upper one; AMD reads both.
bool bound_reads_both(const Observation& s) {
  if (s.mnemonic() != ZYDIS_MNEMONIC_BOUND || s.guest.vector != 5) return false;
  const uint64_t start = effective_address(s.one, s.in, s.in.operands[1]), width = s.in.operands[1].size / 8;
  return access_failed(s, s.host, start + width / 2, start + width) && only_faults_differ(s);
}

// CMPS with both operands unmapped: Intel reads the destination first. AMD reads the source first: for REPE
// CMPSB on all of its CPUs; on family 26 for every size, repeated or not.
bool source_first(const Observation& s) {
  switch (s.mnemonic()) {
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:  // also the SSE comparison
    case ZYDIS_MNEMONIC_CMPSQ:
      break;
    default:
      return false;
  }
  if (s.in.info.meta.category != ZYDIS_CATEGORY_STRINGOP) return false;
  uint64_t offset = s.host.state.gpr[kRsi];
  if (s.in.info.address_width < 64) offset &= (uint64_t{1} << s.in.info.address_width) - 1;
  const uint64_t source = offset + segment_base(s.one, first(s.in).mem.segment);
  return faulted_on_access(s.guest) && faulted_on_access(s.host) && undone(s, s.host) &&
         (s.host.vector == 14 ? s.host.address == source : !canonical(source));
}
bool single_comparison(const Observation& s) {
  return source_first(s) && only_faults_differ(s);
}

// A repeated string instruction that faults. With 32-bit addresses in 64-bit code, Intel clears the upper
// halves of its registers first; AMD does not change them. After a comparison, Intel keeps the initial flags;
// AMD sets those of the last successful comparison.
bool repeated(const Observation& s) {
  constexpr uint64_t kRepeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if (s.in.info.meta.category != ZYDIS_CATEGORY_STRINGOP || !(s.in.info.attributes & kRepeats)) return false;
  const auto& before = s.one.state;
  const auto& guest = s.guest.state;
  const auto& host = s.host.state;
  const auto kept = [&](unsigned reg) {
    return s.in_64() && s.in.info.address_width == 32 && host.gpr[reg] == before.gpr[reg] &&
           guest.gpr[reg] == static_cast<uint32_t>(before.gpr[reg]);
  };
  const auto last_flags = [&] {
    return (s.in.info.attributes & (ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) && undone(s, s.host) &&
           s.host.vector == 14 && guest.gpr[kRcx] != before.gpr[kRcx] &&
           ((guest.flags ^ host.flags) & ~flag::kArithmetic) == 0 &&
           ((guest.flags ^ before.flags) & flag::kArithmetic) == 0;
  };
  return std::all_of(s.found.begin(), s.found.end(), [&](const Difference& one) {
    return (one.what == "rcx" && kept(kRcx)) || (one.what == "rsi" && kept(kRsi)) ||
           (one.what == "rdi" && kept(kRdi)) || (one.what == "flags" && last_flags()) ||
           (among(one.what, {"exception", "error code", "fault address"}) && source_first(s));
  });
}

// An x87 store that raises an unmasked exception stores nothing. Intel does not check the destination; AMD
// first reports that it is unmapped.
bool x87_store_to_nowhere(const Observation& s) {
  switch (s.mnemonic()) {
    case ZYDIS_MNEMONIC_FST:
    case ZYDIS_MNEMONIC_FSTP:
    case ZYDIS_MNEMONIC_FIST:
    case ZYDIS_MNEMONIC_FISTP:
    case ZYDIS_MNEMONIC_FBSTP:
      break;
    default:
      return false;
  }
  constexpr uint16_t kPending = 0x80;
  const auto status = [](const CpuState& state) { return state.floats.get<uint16_t>(FloatState::kStatus); };
  return faulted_on_access(s.host) && undone(s, s.host) && !undone(s, s.guest) &&
         (status(s.guest.state) & kPending) && status(s.host.state) == status(s.one.state) &&
         only(s, {"exception", "error code", "fault address", "rip", "flags", "fpu status"});
}

// Bit 17 of MXCSR: reserved by Intel; AMD's mode for misaligned operands.
bool misaligned_mode(const Observation& s) {
  const bool all_floats = s.mnemonic() == ZYDIS_MNEMONIC_FXRSTOR || s.mnemonic() == ZYDIS_MNEMONIC_FXRSTOR64;
  if (!all_floats && s.mnemonic() != ZYDIS_MNEMONIC_LDMXCSR) return false;
  const uint32_t loaded = s.host.state.floats.get<uint32_t>(FloatState::kMxcsr);
  if (s.guest.vector != 13 || !undone(s, s.guest) || loaded >> 16 != 2) return false;
  return std::all_of(s.found.begin(), s.found.end(), [&](const Difference& one) {
    const auto starts = [&](std::string_view start) { return one.what.starts_with(start); };
    return among(one.what, {"exception", "error code", "fault address", "rip", "flags", "mxcsr"}) ||
           (all_floats && (starts("fpu") || starts("st") || starts("xmm")));
  });
}

// An access across the end of 32-bit addresses: Intel continues at 0 (unmapped here); AMD treats it as beyond
// the segment's limit.
bool beyond_4gib(const Observation& s) {
  constexpr uint64_t k4GiB = uint64_t{1} << 32;
  return !s.in_64() && access_failed(s, s.guest, k4GiB - 16, k4GiB) &&
         (s.host.vector == 12 || s.host.vector == 13) && s.host.error == 0 && undone(s, s.host) &&
         only_faults_differ(s);
}

// An address relative to FS or GS must be canonical. AMD requires that of the offset, too.
bool offset_not_canonical(const Observation& s) {
  if (!s.in_64() || s.host.vector != 13 || s.host.error != 0 || !undone(s, s.host)) return false;
  const ZydisDecodedOperand* memory = std::find_if(
      std::begin(s.in.operands), std::begin(s.in.operands) + s.in.info.operand_count_visible,
      [](const ZydisDecodedOperand& operand) { return operand.type == ZYDIS_OPERAND_TYPE_MEMORY; });
  if (memory == std::begin(s.in.operands) + s.in.info.operand_count_visible) return false;
  const uint64_t base = segment_base(s.one, memory->mem.segment), address = s.guest.address;
  return base != 0 && access_failed(s, s.guest, 0, ~uint64_t{0}) && canonical(address) &&
         !canonical(address - base) && only_faults_differ(s);
}

// A near call to a non-canonical address: Intel stores the return address before it faults; AMD does not.
bool call_to_nowhere(const Observation& s) {
  const uint64_t top = s.one.state.gpr[kRsp];
  return s.in_64() && s.mnemonic() == ZYDIS_MNEMONIC_CALL &&
         s.in.info.meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR && s.host.vector == 13 && undone(s, s.host) &&
         only(s, {"memory"}) && same_memory_outside(s, top - 8, top);
}

// IRETQ to a non-canonical address with an invalid stack segment: Intel reports the segment, AMD the address.
bool return_to_nowhere(const Observation& s) {
  return s.mnemonic() == ZYDIS_MNEMONIC_IRETQ && s.host.vector == 13 && s.host.error == 0 &&
         undone(s, s.host) && only(s, {"error code"});
}

// Bytes that are no instruction because of LOCK. AMD's LOCK MOV CR0 is MOV CR8, so it is privileged instead
// of undefined. AMD also ignores LOCK before VERW of memory, so execution continues and anything may follow.
bool locked(const Case& one, const Outcome& guest, const Outcome& host,
            const std::vector<Difference>& found) {
  bool lock = false;
  unsigned at = 0;
  for (; at + 2 < one.length && one.bytes[at] != 0x0f; ++at) lock = lock || one.bytes[at] == 0xf0;
  if (!lock || guest.vector != 6) return false;
  const uint8_t opcode = one.bytes[at + 1], modrm = one.bytes[at + 2];
  const unsigned digit = modrm >> 3 & 7;
  if (opcode == 0x20 || opcode == 0x22)
    return digit == 0 && host.vector == 13 && found.size() == 1 && found[0].what == "exception";
  return opcode == 0x00 && digit == 5 && modrm < 0xc0;
}

constexpr bool (*kCorners[])(const Observation&) = {
    trap_address,         short_branch,
    loop_condition,       far_pointer,
    prefetch_of_register, pause_exchanges,
    long_double_shift,    push_of_segment,
    pop_of_segment,       undefined_with_operands,
    movsxd_of_word,       bound_reads_both,
    single_comparison,    repeated,
    misaligned_mode,      x87_store_to_nowhere,
    beyond_4gib,          call_to_nowhere,
    offset_not_canonical, return_to_nowhere,
};

}  // namespace

bool host_is_intel() {
  static const bool intel = __builtin_cpu_is("intel");
  return intel;
}

bool vendors_differ(const Case& one, const Decoded* in, const Outcome& guest, const Outcome& host,
                    const std::vector<Difference>& found) {
  if (host_is_intel() || guest.unknown || !guest.ended || !host.ended) return false;
  if (in == nullptr) return locked(one, guest, host, found);
  const Observation seen{one, *in, guest, host, found};
  return std::any_of(std::begin(kCorners), std::end(kCorners), [&](auto corner) { return corner(seen); });
}

}  // namespace slalom::vm::diff
