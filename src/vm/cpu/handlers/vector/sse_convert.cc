// Conversions between singles, doubles and integers, in XMM, MMX and general registers.
#include "vm/cpu/handlers/vector/sse_host.h"

namespace slalom::vm {
namespace {

HOST_INSTRUCTION(cvtps2pd);
HOST_ROUNDING(cvtpd2ps, 8, 2, Product);
HOST_INSTRUCTION(cvtss2sd);
HOST_ROUNDING(cvtsd2ss, 8, 1, Product);
HOST_INSTRUCTION(cvtdq2ps);
HOST_INSTRUCTION(cvtps2dq);
HOST_INSTRUCTION(cvttps2dq);
HOST_INSTRUCTION(cvtdq2pd);
HOST_INSTRUCTION(cvtpd2dq);
HOST_INSTRUCTION(cvttpd2dq);

// Conversions from or to a general register. The integer is passed in the low part of a vector.
#define HOST_FROM_GENERAL(name, suffix, Integer)              \
  struct Host_##name##suffix {                                \
    static __m128i run(__m128i a, __m128i b, uint32_t& csr) { \
      const auto from = static_cast<Integer>(low_of(b));      \
      asm volatile("ldmxcsr %[csr]\n\t" #name #suffix         \
                   " %[from], %[a]\n\t"                       \
                   "stmxcsr %[csr]"                           \
                   : [a] "+x"(a), [csr] "+m"(csr)             \
                   : [from] "r"(from));                       \
      return a;                                               \
    }                                                         \
  }
HOST_FROM_GENERAL(cvtsi2ss, l, uint32_t);
HOST_FROM_GENERAL(cvtsi2ss, q, uint64_t);
HOST_FROM_GENERAL(cvtsi2sd, l, uint32_t);
HOST_FROM_GENERAL(cvtsi2sd, q, uint64_t);

#define HOST_TO_GENERAL(name, suffix, Integer)              \
  struct Host_##name##suffix {                              \
    static __m128i run(__m128i, __m128i b, uint32_t& csr) { \
      Integer to;                                           \
      asm volatile("ldmxcsr %[csr]\n\t" #name #suffix       \
                   " %[b], %[to]\n\t"                       \
                   "stmxcsr %[csr]"                         \
                   : [to] "=r"(to), [csr] "+m"(csr)         \
                   : [b] "x"(b));                           \
      return low_only(to);                                  \
    }                                                       \
  }
HOST_TO_GENERAL(cvtss2si, l, uint32_t);
HOST_TO_GENERAL(cvtss2si, q, uint64_t);
HOST_TO_GENERAL(cvttss2si, l, uint32_t);
HOST_TO_GENERAL(cvttss2si, q, uint64_t);
HOST_TO_GENERAL(cvtsd2si, l, uint32_t);
HOST_TO_GENERAL(cvtsd2si, q, uint64_t);
HOST_TO_GENERAL(cvttsd2si, l, uint32_t);
HOST_TO_GENERAL(cvttsd2si, q, uint64_t);

template <class F, class Integer, bool memory>
const Op* from_general(Cpu& cpu, const Op* op) {
  Integer value;
  if (!sse_ready(cpu) || !load_source < Integer,
      memory ? Source::Memory : Source::Register > (cpu, op, value))
    return stop(cpu, op);
  __m128i a = get_xmm(cpu, op->dst);
  if (!compute<F>(cpu, a, low_only(value))) return stop(cpu, op);
  set_xmm(cpu, op->dst, a);
  NEXT;
}

template <class F, class Integer, unsigned bytes, bool memory>
const Op* to_general(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !load_xmm_source<bytes, memory>(cpu, op, b)) return stop(cpu, op);
  __m128i a = b;
  if (!compute<F>(cpu, a, b)) return stop(cpu, op);
  set<Integer>(cpu, op->dst, static_cast<Integer>(low_of(a)));
  NEXT;
}

// Conversions from or to MMX registers. They are XMM conversions whose upper lanes are zero and so raise
// nothing. The x87 stack changes even if an unmasked exception then stops the conversion, but not if the
// operand is in memory.
template <class F, bool merges, bool memory>
const Op* from_mmx(Cpu& cpu, const Op* op) {
  uint64_t integers;
  if (!sse_ready(cpu)) return stop(cpu, op);
  if constexpr (memory) {
    if (!load_operand(cpu, op, integers)) return stop(cpu, op);
  } else {
    if (!mmx_ready(cpu)) return stop(cpu, op);
    enter_mmx(cpu);
    integers = get_mmx(cpu, op->src);
  }
  __m128i a = get_xmm(cpu, op->dst);
  if (!compute<F>(cpu, a, low_only(integers))) return stop(cpu, op);
  if constexpr (merges)
    cpu.regs.xmm[op->dst].low = low_of(a);
  else
    set_xmm(cpu, op->dst, a);
  NEXT;
}

template <class F, unsigned bytes, bool memory>
const Op* to_mmx(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !mmx_ready(cpu) || !load_xmm_source<bytes, memory>(cpu, op, b)) return stop(cpu, op);
  if constexpr (bytes == 8) b = _mm_move_epi64(b);
  enter_mmx(cpu);
  __m128i a = b;
  if (!compute<F>(cpu, a, b)) return stop(cpu, op);
  set_mmx(cpu, op->dst, low_of(a));
  NEXT;
}

template <class F, unsigned bytes>
Handler pick(bool memory) {
  return memory ? on_host<F, bytes, true> : on_host<F, bytes, false>;
}
template <class Narrow, class Wide>
Handler pick_from_general(bool wide, bool memory) {
  if (wide) return memory ? from_general<Wide, uint64_t, true> : from_general<Wide, uint64_t, false>;
  return memory ? from_general<Narrow, uint32_t, true> : from_general<Narrow, uint32_t, false>;
}
template <class Narrow, class Wide, unsigned bytes>
Handler pick_to_general(bool wide, bool memory) {
  if (wide)
    return memory ? to_general<Wide, uint64_t, bytes, true> : to_general<Wide, uint64_t, bytes, false>;
  return memory ? to_general<Narrow, uint32_t, bytes, true> : to_general<Narrow, uint32_t, bytes, false>;
}
template <class F, bool merges>
Handler pick_from_mmx(bool memory) {
  return memory ? from_mmx<F, merges, true> : from_mmx<F, merges, false>;
}
template <class F, unsigned bytes>
Handler pick_to_mmx(bool memory) {
  return memory ? to_mmx<F, bytes, true> : to_mmx<F, bytes, false>;
}

}  // namespace

Handler select_sse_convert(Instruction& in, Op& op) {
  take_operands(in, op);
  const bool memory = in.is_memory(1);
  const bool wide_source = in.size(1) == 8, wide_result = in.size(0) == 8;
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_CVTPS2PD:
      return pick<Host_cvtps2pd, 8>(memory);
    case ZYDIS_MNEMONIC_CVTPD2PS:
      return pick<Host_cvtpd2ps, 16>(memory);
    case ZYDIS_MNEMONIC_CVTSS2SD:
      return pick<Host_cvtss2sd, 4>(memory);
    case ZYDIS_MNEMONIC_CVTSD2SS:
      return pick<Host_cvtsd2ss, 8>(memory);
    case ZYDIS_MNEMONIC_CVTDQ2PS:
      return pick<Host_cvtdq2ps, 16>(memory);
    case ZYDIS_MNEMONIC_CVTPS2DQ:
      return pick<Host_cvtps2dq, 16>(memory);
    case ZYDIS_MNEMONIC_CVTTPS2DQ:
      return pick<Host_cvttps2dq, 16>(memory);
    case ZYDIS_MNEMONIC_CVTDQ2PD:
      return pick<Host_cvtdq2pd, 8>(memory);
    case ZYDIS_MNEMONIC_CVTPD2DQ:
      return pick<Host_cvtpd2dq, 16>(memory);
    case ZYDIS_MNEMONIC_CVTTPD2DQ:
      return pick<Host_cvttpd2dq, 16>(memory);
    case ZYDIS_MNEMONIC_CVTSI2SS:
      return pick_from_general<Host_cvtsi2ssl, Host_cvtsi2ssq>(wide_source, memory);
    case ZYDIS_MNEMONIC_CVTSI2SD:
      return pick_from_general<Host_cvtsi2sdl, Host_cvtsi2sdq>(wide_source, memory);
    case ZYDIS_MNEMONIC_CVTSS2SI:
      return pick_to_general<Host_cvtss2sil, Host_cvtss2siq, 4>(wide_result, memory);
    case ZYDIS_MNEMONIC_CVTTSS2SI:
      return pick_to_general<Host_cvttss2sil, Host_cvttss2siq, 4>(wide_result, memory);
    case ZYDIS_MNEMONIC_CVTSD2SI:
      return pick_to_general<Host_cvtsd2sil, Host_cvtsd2siq, 8>(wide_result, memory);
    case ZYDIS_MNEMONIC_CVTTSD2SI:
      return pick_to_general<Host_cvttsd2sil, Host_cvttsd2siq, 8>(wide_result, memory);
    case ZYDIS_MNEMONIC_CVTPI2PS:
      return pick_from_mmx<Host_cvtdq2ps, true>(memory);
    case ZYDIS_MNEMONIC_CVTPI2PD:
      return pick_from_mmx<Host_cvtdq2pd, false>(memory);
    case ZYDIS_MNEMONIC_CVTPS2PI:
      return pick_to_mmx<Host_cvtps2dq, 8>(memory);
    case ZYDIS_MNEMONIC_CVTTPS2PI:
      return pick_to_mmx<Host_cvttps2dq, 8>(memory);
    case ZYDIS_MNEMONIC_CVTPD2PI:
      return pick_to_mmx<Host_cvtpd2dq, 16>(memory);
    case ZYDIS_MNEMONIC_CVTTPD2PI:
      return pick_to_mmx<Host_cvttpd2dq, 16>(memory);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
