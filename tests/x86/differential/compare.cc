#include "compare.h"

#include <fmt/format.h>

#include <cmath>

#include "favour.h"
#include "undefined.h"
#include "vendor.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {
namespace {

constexpr const char* kNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

class Comparison {
 public:
  template <class T>
  void same(const std::string& what, T guest, T host) {
    if (guest != host) add(what, fmt::format("{:x}", guest), fmt::format("{:x}", host));
  }
  void add(std::string what, std::string guest, std::string host) {
    found_.push_back({std::move(what), std::move(guest), std::move(host)});
  }
  std::vector<Difference> take() { return std::move(found_); }

 private:
  std::vector<Difference> found_;
};

// For its own half of the address space, Linux does not show programs whether a page is missing or forbidden.
uint32_t visible_error(const Outcome& outcome) {
  return outcome.vector == 14 && outcome.address >= (uint64_t{1} << 47) - kPage ? outcome.error | 1
                                                                                : outcome.error;
}

std::string flag_text(uint64_t flags) {
  std::string text = fmt::format("{:x}", flags);
  constexpr std::pair<uint64_t, const char*> names[] = {
      {flag::kCarry, "CF"}, {flag::kParity, "PF"},   {flag::kAdjust, "AF"},    {flag::kZeroFlag, "ZF"},
      {flag::kSign, "SF"},  {flag::kOverflow, "OF"}, {flag::kDirection, "DF"}, {flag::kResume, "RF"}};
  for (const auto& [bit, name] : names)
    if (flags & bit) text += fmt::format(" {}", name);
  return text;
}

// Within the relative error that the manuals allow: 1.5 * 2^-12.
bool nearly_equal(uint32_t a, uint32_t b) {
  if (a == b) return true;
  const float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (!std::isfinite(x) || !std::isfinite(y)) return false;
  return std::abs(x - y) <= 2 * 1.5f / 4096 * std::abs(y);
}

long double long_double(const FloatState& state, unsigned i) {
  long double value = 0;
  std::memcpy(&value, state.bytes.data() + FloatState::kStack + 16 * i, 10);
  return value;
}
bool nearly_equal(long double x, long double y) {
  const long double error = std::abs(x - y);
  return std::isfinite(x) && std::isfinite(y) && (error <= 1e-17L * std::abs(y) || error <= 0x1p-16440L);
}

// Instructions that access several places. The CPU decides which access faults first, and what is stored
// before.
bool reads_in_pieces(const Decoded& in) {
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FBLD:
    case ZYDIS_MNEMONIC_FLD:
    case ZYDIS_MNEMONIC_FBSTP:
    case ZYDIS_MNEMONIC_FSTP:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_PUSHA:
    case ZYDIS_MNEMONIC_PUSHAD:
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD:
    case ZYDIS_MNEMONIC_BOUND:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return true;
    default:
      return in.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  }
}
// Close to each other, perhaps across the point where 16-bit or 32-bit addresses wrap.
bool both_within(uint64_t a, uint64_t b) {
  return static_cast<uint16_t>(a - b + 512) <= 1024;
}

bool faulted_on_access(const Outcome& outcome) {
  return outcome.vector >= 12 && outcome.vector <= 14;
}

void compare_vectors(const Case& one, const FloatState& guest, const FloatState& host, bool approximate,
                     Comparison& out) {
  for (unsigned i = 0; i < (one.mode == Mode::k64 ? 16u : 8u); ++i) {
    const unsigned at = FloatState::kXmm + 16 * i;
    bool same = std::memcmp(guest.bytes.data() + at, host.bytes.data() + at, 16) == 0;
    if (!same && approximate) {
      same = true;
      for (unsigned lane = 0; lane < 16; lane += 4)
        same = same && nearly_equal(guest.get<uint32_t>(at + lane), host.get<uint32_t>(at + lane));
    }
    if (same) continue;
    const auto text = [&](const FloatState& f) {
      return fmt::format("{:016x} {:016x}", f.get<uint64_t>(at + 8), f.get<uint64_t>(at));
    };
    out.add(fmt::format("xmm{}", i), text(guest), text(host));
  }
}

void compare_floats(const Case& one, const FloatState& guest, const FloatState& host,
                    const Undefined& undefined, Comparison& out) {
  if (undefined.no_stack) return compare_vectors(one, guest, host, false, out);
  out.same("fpu control", guest.get<uint16_t>(FloatState::kControl),
           host.get<uint16_t>(FloatState::kControl));
  const auto mask = static_cast<uint16_t>(~undefined.x87_status);
  // An approximation may be rounded in the other direction, which affects the precision exception and C1.
  const auto rounding = static_cast<uint16_t>(undefined.approximate_x87 ? ~0x220 : 0xffff);
  out.same("fpu status", static_cast<uint16_t>(guest.get<uint16_t>(FloatState::kStatus) & mask & rounding),
           static_cast<uint16_t>(host.get<uint16_t>(FloatState::kStatus) & mask & rounding));
  out.same("fpu tags", guest.get<uint8_t>(FloatState::kTags), host.get<uint8_t>(FloatState::kTags));
  out.same("mxcsr", guest.get<uint32_t>(FloatState::kMxcsr), host.get<uint32_t>(FloatState::kMxcsr));
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned at = FloatState::kStack + 16 * i;
    if (std::memcmp(guest.bytes.data() + at, host.bytes.data() + at, 10) == 0) continue;
    if (undefined.approximate_x87 && nearly_equal(long_double(guest, i), long_double(host, i))) continue;
    const auto text = [&](const FloatState& f) {
      return fmt::format("{:04x} {:016x}", f.get<uint16_t>(at + 8), f.get<uint64_t>(at));
    };
    out.add(fmt::format("st{}", i), text(guest), text(host));
  }
  compare_vectors(one, guest, host, undefined.approximate_vectors, out);
}

bool may_differ(const Case& one, const Decoded& in, uint64_t address) {
  for (unsigned i = 0; i < in.info.operand_count_visible; ++i) {
    const ZydisDecodedOperand& operand = in.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    const uint64_t start = effective_address(one, in, operand);
    for (const auto& [first, last] : undefined_bytes(in))
      if (address >= start + first && address < start + last) return true;
  }
  return false;
}

void compare_memory(const Case& one, const std::optional<Decoded>& in, const Outcome& guest,
                    const Outcome& host, Comparison& out) {
  if (std::memcmp(guest.data.data(), host.data.data(), kWritable) == 0) return;
  unsigned shown = 0;
  for (uint64_t at = 0; at < kWritable && shown < 16; ++at) {
    if (guest.data[at] == host.data[at] || (in && may_differ(one, *in, kData + at))) continue;
    out.add(fmt::format("byte at {:x}", kData + at), fmt::format("{:02x}", guest.data[at]),
            fmt::format("{:02x}", host.data[at]));
    ++shown;
  }
}

std::vector<Difference> differences_of(const Case& one, const std::optional<Decoded>& in,
                                       const Outcome& guest, const Outcome& host) {
  Comparison out;
  if (guest.unknown) {
    out.add("instruction", "not implemented", host.ended ? fmt::format("vector {}", host.vector) : "nothing");
    return out.take();
  }
  // A page fault of 32-bit code above 4 GiB (a far call to 64-bit code with the stack pointer at 0). Linux
  // takes it for an erratum of old CPUs and repeats the instruction forever.
  if (!host.ended && guest.vector == 14 && one.mode == Mode::k32 && guest.address >> 32 != 0) return {};
  if (guest.ended != host.ended) {
    out.add("end", guest.ended ? fmt::format("vector {}", guest.vector) : "never",
            host.ended ? fmt::format("vector {}", host.vector) : "never");
    return out.take();
  }
  if (host.state.rip >> 12 == 0xffffffffff600) return {};  // Linux emulates calls to that page
  // A mask of zeros may fault or not.
  if (in &&
      (in->info.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU || in->info.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ) &&
      guest.state.rip != one.state.rip && faulted_on_access(host))
    return {};
  if (in && reads_in_pieces(*in) && guest.vector != host.vector && faulted_on_access(guest) &&
      faulted_on_access(host))
    return {};
  // A fault leaves the instruction undone, so everything must be unchanged.
  out.same("exception", guest.vector, host.vector);
  if (!(in && reads_in_pieces(*in) && host.vector == 14))
    out.same("error code", visible_error(guest), visible_error(host));
  const bool done =
      host.vector == 3 || host.vector == 1 || host.vector == 4 || host.state.rip != one.state.rip;
  if (!(in && reads_in_pieces(*in) && both_within(guest.address, host.address)))
    out.same("fault address", guest.address, host.address);
  out.same("rip", guest.state.rip, host.state.rip);
  const bool pops_all =
      in && (in->info.mnemonic == ZYDIS_MNEMONIC_POPA || in->info.mnemonic == ZYDIS_MNEMONIC_POPAD);
  Undefined undefined = in && done ? undefined_after(one, *in) : Undefined{};
  if (!done && in && in->info.meta.isa_ext == ZYDIS_ISA_EXT_MMX) undefined.no_stack = true;
  for (unsigned i = 0; i < (one.mode == Mode::k64 ? 16u : 8u); ++i)
    if (static_cast<int>(i) != undefined.reg && (done || !pops_all))
      out.same(kNames[i], guest.state.gpr[i], host.state.gpr[i]);
  constexpr const char* segments[] = {"es", "cs", "ss", "ds", "fs", "gs"};
  // Returning from the host's kernel clears every null selector.
  const auto selector = [](uint16_t value) { return static_cast<uint16_t>(value < 4 ? 0 : value); };
  for (unsigned i = 0; i < 6; ++i)
    out.same(segments[i], selector(guest.state.selectors[i]), selector(host.state.selectors[i]));
  const uint64_t flags = ~undefined.flags;
  if ((guest.state.flags & flags) != (host.state.flags & flags))
    out.add("flags", flag_text(guest.state.flags & flags), flag_text(host.state.flags & flags));
  compare_floats(one, guest.state.floats, host.state.floats, undefined, out);
  if (done || !in || !reads_in_pieces(*in)) compare_memory(one, in, guest, host, out);
  return out.take();
}

}  // namespace

Verdict compare(const Case& one, const Outcome& guest, const Outcome& host) {
  const auto in = decode(one.mode, {one.bytes.data(), one.length});
  auto found = differences_of(one, in, guest, host);
  if (!found.empty() && vendors_differ(one, in ? &*in : nullptr, guest, host, found)) return {{}, true};
  return {std::move(found), false};
}

}  // namespace slalom::vm::diff
