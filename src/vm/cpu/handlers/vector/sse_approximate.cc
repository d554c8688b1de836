// RCP and RSQRT: approximations. Every vendor uses a different table.
//
// The result here is the exact value rounded to twelve bits of significand (half up). Its relative error is
// below 2^-12; the manuals promise 1.5 * 2^-12. Denormal operands count as zero and denormal results become
// zero, whatever MXCSR says. No exception is ever raised.
#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kIndefinite = 0xffc00000, kQuiet = 0x00400000;
constexpr unsigned kFractionBits = 23, kKept = 12;

uint32_t exponent_of(uint32_t bits) {
  return (bits >> kFractionBits) & 0xff;
}
uint32_t significand_of(uint32_t bits) {
  return (bits & 0x7fffff) | 0x800000;
}
bool is_nan(uint32_t bits) {
  return (bits & 0x7fffffff) > kInfinity;
}

// `bits` has kKept + 1 bits of a quotient or root; the last one decides the rounding. `exponent` is that of a
// value in [1, 2) with these bits.
uint32_t assemble(uint32_t sign, int exponent, uint32_t bits) {
  uint32_t kept = (bits + 1) >> 1;
  if (kept >> kKept != 0) {
    kept >>= 1;
    ++exponent;
  }
  if (exponent <= 0) return sign;
  return sign | static_cast<uint32_t>(exponent) << kFractionBits |
         ((kept << (kFractionBits + 1 - kKept)) & 0x7fffff);
}

struct Reciprocal {
  uint32_t operator()(uint32_t x) const {
    const uint32_t sign = x & kSign;
    if (is_nan(x)) return x | kQuiet;
    if (exponent_of(x) == 0) return sign | kInfinity;
    if (exponent_of(x) == 0xff) return sign;
    const uint32_t significand = significand_of(x);
    const int exponent = 254 - static_cast<int>(exponent_of(x));
    // 1 / 1.0 is 1. All other results lie between 1/2 and 1.
    if (significand == 0x800000) return assemble(sign, exponent, 1u << kKept);
    return assemble(sign, exponent - 1,
                    static_cast<uint32_t>((uint64_t{1} << (kFractionBits + 1 + kKept)) / significand));
  }
};

struct ReciprocalRoot {
  uint32_t operator()(uint32_t x) const {
    if (is_nan(x)) return x | kQuiet;
    if (exponent_of(x) == 0) return (x & kSign) | kInfinity;
    if ((x & kSign) != 0) return kIndefinite;
    if (exponent_of(x) == 0xff) return 0;
    // x = m * 4^half with m in [1, 4). Its reciprocal root lies in (1/2, 1].
    const int unbiased = static_cast<int>(exponent_of(x)) - 127;
    const int half = unbiased >> 1;
    const uint64_t m = static_cast<uint64_t>(significand_of(x)) << (unbiased & 1);  // times 2^23
    if (m == 0x800000) return assemble(0, 127 - half, 1u << kKept);
    // The largest r of kKept + 1 bits with (r / 2^(kKept + 1))^2 * m <= 1.
    uint64_t r = 0;
    for (uint64_t bit = uint64_t{1} << kKept; bit != 0; bit >>= 1)
      if ((r + bit) * (r + bit) * m <= uint64_t{1} << (2 * kKept + 2 + kFractionBits)) r += bit;
    return assemble(0, 127 - half - 1, static_cast<uint32_t>(r));
  }
};

template <class Function, bool packed, bool memory>
const Op* approximate(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !load_xmm_source < packed ? 16 : 4, memory > (cpu, op, b)) return stop(cpu, op);
  uint32_t from[4], to[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(from), b);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), get_xmm(cpu, op->dst));
  for (unsigned i = 0; i < (packed ? 4 : 1); ++i) to[i] = Function{}(from[i]);
  set_xmm(cpu, op->dst, _mm_loadu_si128(reinterpret_cast<const __m128i*>(to)));
  NEXT;
}

template <class Function, bool packed>
Handler pick(bool memory) {
  return memory ? approximate<Function, packed, true> : approximate<Function, packed, false>;
}

}  // namespace

Handler select_sse_approximate(Instruction& in, Op& op) {
  take_operands(in, op);
  const bool memory = in.is_memory(1);
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_RCPPS:
      return pick<Reciprocal, true>(memory);
    case ZYDIS_MNEMONIC_RCPSS:
      return pick<Reciprocal, false>(memory);
    case ZYDIS_MNEMONIC_RSQRTPS:
      return pick<ReciprocalRoot, true>(memory);
    case ZYDIS_MNEMONIC_RSQRTSS:
      return pick<ReciprocalRoot, false>(memory);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
