// Multiplication, division, sign extension of the accumulator, and decimal adjustment.
#include <limits>

#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

template <class T>
struct Wider;
template <>
struct Wider<uint8_t> {
  using Unsigned = uint16_t;
  using Signed = int16_t;
};
template <>
struct Wider<uint16_t> {
  using Unsigned = uint32_t;
  using Signed = int32_t;
};
template <>
struct Wider<uint32_t> {
  using Unsigned = uint64_t;
  using Signed = int64_t;
};
template <>
struct Wider<uint64_t> {
  using Unsigned = unsigned __int128;
  using Signed = __int128;
};

constexpr uint8_t kAh = kRax * 8 + 1;

// The double-width accumulator: AX, DX:AX, EDX:EAX, RDX:RAX.
template <class T>
inline typename Wider<T>::Unsigned accumulator(const Cpu& cpu) {
  using Wide = typename Wider<T>::Unsigned;
  if constexpr (sizeof(T) == 1) return get<uint16_t>(cpu, kRax);
  return static_cast<Wide>(Wide{get<T>(cpu, kRdx)} << (8 * sizeof(T)) | get<T>(cpu, kRax));
}
template <class T>
inline void set_accumulator(Cpu& cpu, T low, T high) {
  if constexpr (sizeof(T) == 1) {
    set<uint8_t>(cpu, kRax, low);
    set<uint8_t>(cpu, kAh, high);
  } else {
    set<T>(cpu, kRax, low);
    set<T>(cpu, kRdx, high);
  }
}

// SF, ZF, AF and PF are undefined. They are set from the low half here, as CPUs that define them do.
template <class T>
inline void multiplied(Cpu& cpu, T low, bool overflow) {
  cpu.flags.set_result(low);
  cpu.flags.set_carry_overflow(overflow, overflow);
}

template <class T, Source source, bool is_signed>
const Op* multiply(Cpu& cpu, const Op* op) {
  T b;
  if (!load_source<T, source>(cpu, op, b)) return stop(cpu, op);
  const T a = get<T>(cpu, kRax);
  using Wide = typename Wider<T>::Unsigned;
  using SignedWide = typename Wider<T>::Signed;
  using Signed = std::make_signed_t<T>;
  T low, high;
  if constexpr (is_signed) {
    const SignedWide product =
        static_cast<SignedWide>(SignedWide{static_cast<Signed>(a)} * static_cast<Signed>(b));
    low = static_cast<T>(product);
    high = static_cast<T>(product >> (8 * sizeof(T)));
    multiplied(cpu, low, product != static_cast<Signed>(low));
  } else {
    const Wide product = static_cast<Wide>(Wide{a} * b);
    low = static_cast<T>(product);
    high = static_cast<T>(product >> (8 * sizeof(T)));
    multiplied(cpu, low, high != 0);
  }
  set_accumulator(cpu, low, high);
  NEXT;
}

// Two and three operands: only the low half is kept.
template <class T, Source source, bool with_immediate>
const Op* multiply_into(Cpu& cpu, const Op* op) {
  T value;
  if (!load_source<T, source>(cpu, op, value)) return stop(cpu, op);
  using SignedWide = typename Wider<T>::Signed;
  using Signed = std::make_signed_t<T>;
  const Signed a = static_cast<Signed>(value);
  const Signed b =
      with_immediate ? static_cast<Signed>(op->immediate) : static_cast<Signed>(get<T>(cpu, op->dst));
  const SignedWide product = static_cast<SignedWide>(SignedWide{a} * b);
  const T low = static_cast<T>(product);
  multiplied(cpu, low, product != static_cast<Signed>(low));
  set<T>(cpu, op->dst, low);
  NEXT;
}

// Flags are undefined and do not change here.
template <class T, Source source, bool is_signed>
const Op* divide(Cpu& cpu, const Op* op) {
  T divisor;
  if (!load_source<T, source>(cpu, op, divisor)) return stop(cpu, op);
  if (divisor == 0) return raise(cpu, op, kDivide);
  const auto dividend = accumulator<T>(cpu);
  if constexpr (is_signed) {
    using Wide = typename Wider<T>::Signed;
    using Signed = std::make_signed_t<T>;
    const Wide a = static_cast<Wide>(dividend);
    const Signed b = static_cast<Signed>(divisor);
    // The lowest value divided by -1 does not fit into the wide type either.
    if (b == -1) {
      constexpr Wide lowest =
          static_cast<Wide>(static_cast<typename Wider<T>::Unsigned>(1) << (16 * sizeof(T) - 1));
      if (a == lowest) return raise(cpu, op, kDivide);
    }
    const Wide quotient = static_cast<Wide>(a / b);
    if (quotient != static_cast<Signed>(quotient)) return raise(cpu, op, kDivide);
    set_accumulator(cpu, static_cast<T>(quotient), static_cast<T>(a % b));
  } else {
    const auto quotient = dividend / divisor;
    if (quotient > std::numeric_limits<T>::max()) return raise(cpu, op, kDivide);
    set_accumulator(cpu, static_cast<T>(quotient), static_cast<T>(dividend % divisor));
  }
  NEXT;
}

// CBW, CWDE, CDQE.
template <class To, class From>
const Op* extend_accumulator(Cpu& cpu, const Op* op) {
  set<To>(cpu, kRax, static_cast<To>(static_cast<std::make_signed_t<From>>(get<From>(cpu, kRax))));
  NEXT;
}

// CWD, CDQ, CQO.
template <class T>
const Op* extend_to_rdx(Cpu& cpu, const Op* op) {
  const auto value = static_cast<std::make_signed_t<T>>(get<T>(cpu, kRax));
  set<T>(cpu, kRdx, static_cast<T>(value < 0 ? -1 : 0));
  NEXT;
}

template <bool subtract>
const Op* decimal_adjust(Cpu& cpu, const Op* op) {  // DAA, DAS
  const uint8_t old = get<uint8_t>(cpu, kRax);
  const bool old_carry = cpu.flags.carry();
  uint8_t value = old;
  bool carry = false;
  const bool adjust = (old & 15) > 9 || cpu.flags.adjust();
  if (adjust) {
    value = static_cast<uint8_t>(subtract ? value - 6 : value + 6);
    carry = old_carry || (subtract ? old < 6 : old > 0xf9);
  }
  if (old > 0x99 || old_carry) {
    value = static_cast<uint8_t>(subtract ? value - 0x60 : value + 0x60);
    carry = true;
  }
  set<uint8_t>(cpu, kRax, value);
  cpu.flags.set_result(value);
  cpu.flags.set_carry_overflow(carry, false, adjust);
  NEXT;
}

template <bool subtract>
const Op* ascii_adjust(Cpu& cpu, const Op* op) {  // AAA, AAS
  const bool adjust = (get<uint8_t>(cpu, kRax) & 15) > 9 || cpu.flags.adjust();
  uint16_t value = get<uint16_t>(cpu, kRax);
  if (adjust) value = static_cast<uint16_t>(subtract ? value - 0x106 : value + 0x106);
  value &= 0xff0f;
  set<uint16_t>(cpu, kRax, value);
  cpu.flags.set_result(static_cast<uint8_t>(value));
  cpu.flags.set_carry_overflow(adjust, false, adjust);
  NEXT;
}

const Op* aam(Cpu& cpu, const Op* op) {
  const uint8_t base = static_cast<uint8_t>(op->immediate);
  if (base == 0) return raise(cpu, op, kDivide);
  const uint8_t value = get<uint8_t>(cpu, kRax);
  set<uint8_t>(cpu, kAh, value / base);
  set<uint8_t>(cpu, kRax, value % base);
  cpu.flags.set_logical(static_cast<uint8_t>(value % base));
  NEXT;
}

const Op* aad(Cpu& cpu, const Op* op) {
  const uint8_t value =
      static_cast<uint8_t>(get<uint8_t>(cpu, kRax) + get<uint8_t>(cpu, kAh) * op->immediate);
  set<uint16_t>(cpu, kRax, value);
  cpu.flags.set_logical(value);
  NEXT;
}

template <bool is_signed, bool divides>
Handler select_accumulator(Instruction& in, Op& op) {
  op.src = in.register_number(0);
  return by_size(in.size(0), [&]<class T>(T) -> Handler {
    if constexpr (divides)
      return in.is_memory(0) ? divide<T, Source::Memory, is_signed> : divide<T, Source::Register, is_signed>;
    else
      return in.is_memory(0) ? multiply<T, Source::Memory, is_signed>
                             : multiply<T, Source::Register, is_signed>;
  });
}

}  // namespace

Handler select_multiply(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MUL:
      return select_accumulator<false, false>(in, op);
    case ZYDIS_MNEMONIC_DIV:
      return select_accumulator<false, true>(in, op);
    case ZYDIS_MNEMONIC_IDIV:
      return select_accumulator<true, true>(in, op);
    case ZYDIS_MNEMONIC_IMUL: {
      if (in.visible() == 1) return select_accumulator<true, false>(in, op);
      op.dst = in.register_number(0);
      op.src = in.register_number(1);
      const bool immediate = in.visible() == 3;
      if (immediate) op.immediate = in.immediate(2);
      return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
        if (in.is_memory(1))
          return immediate ? multiply_into<T, Source::Memory, true> : multiply_into<T, Source::Memory, false>;
        return immediate ? multiply_into<T, Source::Register, true>
                         : multiply_into<T, Source::Register, false>;
      });
    }
    case ZYDIS_MNEMONIC_CBW:
      return extend_accumulator<uint16_t, uint8_t>;
    case ZYDIS_MNEMONIC_CWDE:
      return extend_accumulator<uint32_t, uint16_t>;
    case ZYDIS_MNEMONIC_CDQE:
      return extend_accumulator<uint64_t, uint32_t>;
    case ZYDIS_MNEMONIC_CWD:
      return extend_to_rdx<uint16_t>;
    case ZYDIS_MNEMONIC_CDQ:
      return extend_to_rdx<uint32_t>;
    case ZYDIS_MNEMONIC_CQO:
      return extend_to_rdx<uint64_t>;
    case ZYDIS_MNEMONIC_DAA:
      return decimal_adjust<false>;
    case ZYDIS_MNEMONIC_DAS:
      return decimal_adjust<true>;
    case ZYDIS_MNEMONIC_AAA:
      return ascii_adjust<false>;
    case ZYDIS_MNEMONIC_AAS:
      return ascii_adjust<true>;
    case ZYDIS_MNEMONIC_AAM:
      op.immediate = in.immediate(0);
      return aam;
    case ZYDIS_MNEMONIC_AAD:
      op.immediate = in.immediate(0);
      return aad;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
