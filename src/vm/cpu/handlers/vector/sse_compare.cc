// Comparisons of singles and doubles: those that produce masks, and those that set flags.
#include "vm/cpu/handlers/vector/sse_host.h"

namespace slalom::vm {
namespace {

// CMPPS and similar, with one host instruction for each of the eight predicates.
#define HOST_COMPARISON(name)                                 \
  template <unsigned predicate>                               \
  struct Host_##name {                                        \
    static __m128i run(__m128i a, __m128i b, uint32_t& csr) { \
      asm volatile("ldmxcsr %[csr]\n\t" #name                 \
                   " %[predicate], %[b], %[a]\n\t"            \
                   "stmxcsr %[csr]"                           \
                   : [a] "+x"(a), [csr] "+m"(csr)             \
                   : [b] "x"(b), [predicate] "i"(predicate)); \
      return a;                                               \
    }                                                         \
  }
HOST_COMPARISON(cmpps);
HOST_COMPARISON(cmppd);
HOST_COMPARISON(cmpss);
HOST_COMPARISON(cmpsd);

// COMISS and similar set the flags. Here the flags are returned as a vector, so that compute() can run them.
#define HOST_ORDER(name)                                                             \
  struct Host_##name {                                                               \
    static __m128i run(__m128i a, __m128i b, uint32_t& csr) {                        \
      bool zero, parity, carry;                                                      \
      asm volatile("ldmxcsr %[csr]\n\t" #name                                        \
                   " %[b], %[a]\n\t"                                                 \
                   "stmxcsr %[csr]"                                                  \
                   : "=@ccz"(zero), "=@ccp"(parity), "=@ccc"(carry), [csr] "+m"(csr) \
                   : [a] "x"(a), [b] "x"(b));                                        \
      return low_only((zero ? flag::kZeroFlag : 0) | (parity ? flag::kParity : 0) |  \
                      (carry ? flag::kCarry : 0));                                   \
    }                                                                                \
  }
HOST_ORDER(comiss);
HOST_ORDER(comisd);
HOST_ORDER(ucomiss);
HOST_ORDER(ucomisd);

template <class F, unsigned bytes, bool memory>
const Op* order(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !load_xmm_source<bytes, memory>(cpu, op, b)) return stop(cpu, op);
  __m128i a = get_xmm(cpu, op->dst);
  if (!compute<F>(cpu, a, b)) return stop(cpu, op);
  cpu.flags.set_arithmetic(low_of(a));
  NEXT;
}

template <template <unsigned> class F, unsigned bytes>
Handler pick_mask(bool memory, unsigned predicate) {
  switch (predicate) {  // higher bits are ignored
    case 0:
      return memory ? on_host<F<0>, bytes, true> : on_host<F<0>, bytes, false>;
    case 1:
      return memory ? on_host<F<1>, bytes, true> : on_host<F<1>, bytes, false>;
    case 2:
      return memory ? on_host<F<2>, bytes, true> : on_host<F<2>, bytes, false>;
    case 3:
      return memory ? on_host<F<3>, bytes, true> : on_host<F<3>, bytes, false>;
    case 4:
      return memory ? on_host<F<4>, bytes, true> : on_host<F<4>, bytes, false>;
    case 5:
      return memory ? on_host<F<5>, bytes, true> : on_host<F<5>, bytes, false>;
    case 6:
      return memory ? on_host<F<6>, bytes, true> : on_host<F<6>, bytes, false>;
    case 7:
      return memory ? on_host<F<7>, bytes, true> : on_host<F<7>, bytes, false>;
    default:
      return nullptr;
  }
}

template <class F, unsigned bytes>
Handler pick_order(bool memory) {
  return memory ? order<F, bytes, true> : order<F, bytes, false>;
}

}  // namespace

Handler select_sse_compare(Instruction& in, Op& op) {
  take_operands(in, op);
  const bool memory = in.is_memory(1);
  const unsigned predicate = op.immediate & 7;
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_CMPPS:
      return pick_mask<Host_cmpps, 16>(memory, predicate);
    case ZYDIS_MNEMONIC_CMPPD:
      return pick_mask<Host_cmppd, 16>(memory, predicate);
    case ZYDIS_MNEMONIC_CMPSS:
      return pick_mask<Host_cmpss, 4>(memory, predicate);
    case ZYDIS_MNEMONIC_CMPSD:
      return pick_mask<Host_cmpsd, 8>(memory, predicate);
    case ZYDIS_MNEMONIC_COMISS:
      return pick_order<Host_comiss, 4>(memory);
    case ZYDIS_MNEMONIC_COMISD:
      return pick_order<Host_comisd, 8>(memory);
    case ZYDIS_MNEMONIC_UCOMISS:
      return pick_order<Host_ucomiss, 4>(memory);
    case ZYDIS_MNEMONIC_UCOMISD:
      return pick_order<Host_ucomisd, 8>(memory);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
