// Unmasked floating point exceptions of the guest. They are rare, so handlers do not contain this code.
//
// The host computes with all exceptions masked and reports less than the guest must see. An unmasked
// underflow is reported for every tiny result, not only for inexact ones. An unmasked overflow or underflow
// is inexact only if the significand was rounded. So each lane is examined separately.
#include <bit>

#include "vm/cpu/handlers/vector/sse_host.h"

namespace slalom::vm {
namespace {

struct Format {
  unsigned fraction_bits;
  uint64_t bias;

  uint64_t exponent(uint64_t x) const { return (x >> fraction_bits) & (2 * bias + 1); }
  uint64_t with_exponent(uint64_t x, uint64_t exponent) const {
    const uint64_t field = (2 * bias + 1) << fraction_bits;
    return (x & ~field) | exponent << fraction_bits;
  }
  uint64_t one() const { return bias << fraction_bits; }
};
constexpr Format kSingle{23, 127}, kDouble{52, 1023};

// Divides by 2^4 if that does not change the significand. A smaller operand is negligible compared with the
// one that made the sum overflow.
uint64_t lowered(const Format& format, uint64_t x) {
  const uint64_t exponent = format.exponent(x);
  return exponent > 4 ? format.with_exponent(x, exponent - 4) : x;
}

// Returns the same significand with an exponent that makes it lie in [1, 2).
uint64_t normalized(const Format& format, uint64_t x) {
  const uint64_t fraction = x & ((uint64_t{1} << format.fraction_bits) - 1);
  if (format.exponent(x) != 0) return format.with_exponent(x, format.bias);
  if (fraction == 0) return x;
  const unsigned up = format.fraction_bits + 1 - static_cast<unsigned>(std::bit_width(fraction));
  return format.with_exponent((x & ~fraction) | fraction << up, format.bias);
}

uint64_t lane_of(__m128i v, const Lanes& lanes, unsigned i) {
  uint64_t value = 0;
  alignas(16) uint8_t bytes[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), v);
  std::memcpy(&value, bytes + i * lanes.bytes, lanes.bytes);
  return value;
}
// A vector with `value` in one lane and `one` in the others.
__m128i alone(const Lanes& lanes, uint64_t value, uint64_t one) {
  if (lanes.bytes == 8) return _mm_set_epi64x(static_cast<int64_t>(one), static_cast<int64_t>(value));
  const auto others = static_cast<int>(one);
  return _mm_set_epi32(others, others, others, static_cast<int>(value));
}

uint32_t raised_by(HostOperation run, __m128i a, __m128i b, uint32_t csr) {
  run(a, b, csr);
  _mm_setcsr(mxcsr::kMasks);
  return csr & mxcsr::kFlags;
}

uint32_t raised_by_lane(HostOperation run, const Lanes& lanes, uint64_t a, uint64_t b, uint32_t csr,
                        uint32_t unmasked) {
  const Format& format = lanes.bytes == 4 ? kSingle : kDouble;
  const auto run_on = [&](uint64_t x, uint64_t y, uint32_t modes) {
    return raised_by(run, alone(lanes, x, format.one()), alone(lanes, y, format.one()), modes);
  };
  // Nothing is flushed while an underflow is unmasked. Flushing would affect every tiny result, so it reveals
  // them.
  if ((unmasked & mxcsr::kUnderflow) != 0) csr &= ~mxcsr::kFlushToZero;
  const bool tiny = (run_on(a, b, csr | mxcsr::kFlushToZero) & mxcsr::kUnderflow) != 0;
  uint32_t raised = run_on(a, b, csr);
  if (tiny && (unmasked & mxcsr::kUnderflow) != 0)
    raised |= mxcsr::kUnderflow;
  else if ((raised & unmasked & mxcsr::kOverflow) == 0)
    return raised;
  const bool product = lanes.rescale == Rescale::Product;
  const auto fitting = [&](uint64_t x) { return product ? normalized(format, x) : lowered(format, x); };
  // A tiny sum is always exact.
  const bool inexact = (product || !tiny) && (run_on(fitting(a), fitting(b), csr) & mxcsr::kPrecision) != 0;
  return (raised & ~mxcsr::kPrecision) | (inexact ? mxcsr::kPrecision : 0);
}

}  // namespace

bool report_unmasked(Cpu& cpu, HostOperation run, __m128i a, __m128i b, const Lanes* lanes) {
  const uint32_t unmasked = ~(cpu.regs.mxcsr >> mxcsr::kMaskShift) & mxcsr::kFlags;
  uint32_t raised = 0;
  if (lanes == nullptr)
    raised = raised_by(run, a, b, host_mxcsr(cpu));
  else
    for (unsigned i = 0; i < lanes->count; ++i)
      raised |= raised_by_lane(run, *lanes, lane_of(a, *lanes, i), lane_of(b, *lanes, i), host_mxcsr(cpu),
                               unmasked);
  // Exceptions of operands are detected before anything is computed.
  constexpr uint32_t kOfOperands = mxcsr::kInvalid | mxcsr::kDenormal | mxcsr::kDivide;
  if ((raised & unmasked & kOfOperands) != 0) raised &= kOfOperands;
  cpu.regs.mxcsr |= raised;
  if ((raised & unmasked) == 0) return true;
  return cpu.raise((cpu.regs.cr4 & cr4::kOsxmmexcpt) != 0 ? kSimd : kInvalidOpcode);
}

}  // namespace slalom::vm
