// Floating point on the host's SSE unit. IEEE 754 defines all results, so the host's are those of any CPU.
//
// The host instruction runs with the guest's rounding and flushing modes and with all exceptions masked. One
// asm statement loads MXCSR, computes, and stores MXCSR, so that the compiler cannot move anything in
// between. Host code afterwards has its own modes again; it ignores the sticky flags that remain.
#pragma once

#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {

namespace mxcsr {
inline constexpr uint32_t kInvalid = 1, kDenormal = 2, kDivide = 4, kOverflow = 8, kUnderflow = 16,
                          kPrecision = 32;
inline constexpr uint32_t kFlags = 0x3f;
inline constexpr uint32_t kMasks = 0x1f80, kMaskShift = 7;
inline constexpr uint32_t kDenormalsAreZero = 0x40, kFlushToZero = 0x8000;
inline constexpr uint32_t kModes = 0xe040;  // rounding, flush to zero, denormals are zero
inline constexpr uint32_t kValid = 0xffff;  // other bits must be zero: the mask that FXSAVE stores
}  // namespace mxcsr

inline uint32_t host_mxcsr(const Cpu& cpu) {
  return (cpu.regs.mxcsr & mxcsr::kModes) | mxcsr::kMasks;
}

// Restores the host's own modes.
inline void leave_guest_modes(const Cpu& cpu) {
  if (__builtin_expect((cpu.regs.mxcsr & mxcsr::kModes) != 0, 0)) _mm_setcsr(mxcsr::kMasks);
}

// Computes an operation on the host with the modes in `csr`, and adds the flags that it raised.
using HostOperation = __m128i (*)(__m128i a, __m128i b, uint32_t& csr);

// The layout of an operation's operands, and how to rescale them so that the result fits and keeps its
// significand. That decides whether an unmasked overflow or underflow is inexact.
enum class Rescale : uint8_t { Sum, Product };
struct Lanes {
  uint8_t bytes;
  uint8_t count;
  Rescale rescale;
};

// For unmasked exceptions: sets the flags that the guest sees. Returns false if the operation faults. No
// lanes: the result always fits.
bool report_unmasked(Cpu& cpu, HostOperation run, __m128i a, __m128i b, const Lanes* lanes);

// Computes a = F(a, b). Returns false for an unmasked exception; then cpu.fault is set, and `a` must not be
// used.
template <class F>
inline bool compute(Cpu& cpu, __m128i& a, __m128i b) {
  uint32_t csr = host_mxcsr(cpu);
  const __m128i before = a;
  a = F::run(a, b, csr);
  leave_guest_modes(cpu);
  if (__builtin_expect((cpu.regs.mxcsr & mxcsr::kMasks) != mxcsr::kMasks, 0)) {
    if constexpr (requires { F::kLanes; })
      return report_unmasked(cpu, F::run, before, b, &F::kLanes);
    else
      return report_unmasked(cpu, F::run, before, b, nullptr);
  }
  cpu.regs.mxcsr |= csr & mxcsr::kFlags;
  return true;
}

// A handler: sets the destination to F(destination, source).
template <class F, unsigned bytes, bool memory>
const Op* on_host(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !load_xmm_source<bytes, memory>(cpu, op, b)) return stop(cpu, op);
  __m128i a = get_xmm(cpu, op->dst);
  if (!compute<F>(cpu, a, b)) return stop(cpu, op);
  set_xmm(cpu, op->dst, a);
  NEXT;
}

// A host instruction of the form `name source, destination`. The other arguments are additional members.
#define HOST_INSTRUCTION(name, ...)                           \
  struct Host_##name {                                        \
    __VA_ARGS__                                               \
    static __m128i run(__m128i a, __m128i b, uint32_t& csr) { \
      asm volatile("ldmxcsr %[csr]\n\t" #name                 \
                   " %[b], %[a]\n\t"                          \
                   "stmxcsr %[csr]"                           \
                   : [a] "+x"(a), [csr] "+m"(csr)             \
                   : [b] "x"(b));                             \
      return a;                                               \
    }                                                         \
  }

#define HOST_ROUNDING(name, bytes, count, rescale) \
  HOST_INSTRUCTION(name, static constexpr Lanes kLanes{bytes, count, Rescale::rescale};)

}  // namespace slalom::vm
