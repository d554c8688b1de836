// Arithmetic on singles and doubles, packed and scalar.
#include "vm/cpu/handlers/vector/sse_host.h"

namespace slalom::vm {
namespace {

HOST_ROUNDING(addps, 4, 4, Sum);
HOST_ROUNDING(addpd, 8, 2, Sum);
HOST_ROUNDING(addss, 4, 1, Sum);
HOST_ROUNDING(addsd, 8, 1, Sum);
HOST_ROUNDING(subps, 4, 4, Sum);
HOST_ROUNDING(subpd, 8, 2, Sum);
HOST_ROUNDING(subss, 4, 1, Sum);
HOST_ROUNDING(subsd, 8, 1, Sum);
HOST_ROUNDING(mulps, 4, 4, Product);
HOST_ROUNDING(mulpd, 8, 2, Product);
HOST_ROUNDING(mulss, 4, 1, Product);
HOST_ROUNDING(mulsd, 8, 1, Product);
HOST_ROUNDING(divps, 4, 4, Product);
HOST_ROUNDING(divpd, 8, 2, Product);
HOST_ROUNDING(divss, 4, 1, Product);
HOST_ROUNDING(divsd, 8, 1, Product);
HOST_INSTRUCTION(minps);
HOST_INSTRUCTION(minpd);
HOST_INSTRUCTION(minss);
HOST_INSTRUCTION(minsd);
HOST_INSTRUCTION(maxps);
HOST_INSTRUCTION(maxpd);
HOST_INSTRUCTION(maxss);
HOST_INSTRUCTION(maxsd);
HOST_INSTRUCTION(sqrtps);
HOST_INSTRUCTION(sqrtpd);
HOST_INSTRUCTION(sqrtss);
HOST_INSTRUCTION(sqrtsd);

template <class F, unsigned bytes>
Handler pick(bool memory) {
  return memory ? on_host<F, bytes, true> : on_host<F, bytes, false>;
}

}  // namespace

Handler select_sse_arithmetic(Instruction& in, Op& op) {
  take_operands(in, op);
  const bool memory = in.is_memory(1);
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_ADDPS:
      return pick<Host_addps, 16>(memory);
    case ZYDIS_MNEMONIC_ADDPD:
      return pick<Host_addpd, 16>(memory);
    case ZYDIS_MNEMONIC_ADDSS:
      return pick<Host_addss, 4>(memory);
    case ZYDIS_MNEMONIC_ADDSD:
      return pick<Host_addsd, 8>(memory);
    case ZYDIS_MNEMONIC_SUBPS:
      return pick<Host_subps, 16>(memory);
    case ZYDIS_MNEMONIC_SUBPD:
      return pick<Host_subpd, 16>(memory);
    case ZYDIS_MNEMONIC_SUBSS:
      return pick<Host_subss, 4>(memory);
    case ZYDIS_MNEMONIC_SUBSD:
      return pick<Host_subsd, 8>(memory);
    case ZYDIS_MNEMONIC_MULPS:
      return pick<Host_mulps, 16>(memory);
    case ZYDIS_MNEMONIC_MULPD:
      return pick<Host_mulpd, 16>(memory);
    case ZYDIS_MNEMONIC_MULSS:
      return pick<Host_mulss, 4>(memory);
    case ZYDIS_MNEMONIC_MULSD:
      return pick<Host_mulsd, 8>(memory);
    case ZYDIS_MNEMONIC_DIVPS:
      return pick<Host_divps, 16>(memory);
    case ZYDIS_MNEMONIC_DIVPD:
      return pick<Host_divpd, 16>(memory);
    case ZYDIS_MNEMONIC_DIVSS:
      return pick<Host_divss, 4>(memory);
    case ZYDIS_MNEMONIC_DIVSD:
      return pick<Host_divsd, 8>(memory);
    case ZYDIS_MNEMONIC_MINPS:
      return pick<Host_minps, 16>(memory);
    case ZYDIS_MNEMONIC_MINPD:
      return pick<Host_minpd, 16>(memory);
    case ZYDIS_MNEMONIC_MINSS:
      return pick<Host_minss, 4>(memory);
    case ZYDIS_MNEMONIC_MINSD:
      return pick<Host_minsd, 8>(memory);
    case ZYDIS_MNEMONIC_MAXPS:
      return pick<Host_maxps, 16>(memory);
    case ZYDIS_MNEMONIC_MAXPD:
      return pick<Host_maxpd, 16>(memory);
    case ZYDIS_MNEMONIC_MAXSS:
      return pick<Host_maxss, 4>(memory);
    case ZYDIS_MNEMONIC_MAXSD:
      return pick<Host_maxsd, 8>(memory);
    case ZYDIS_MNEMONIC_SQRTPS:
      return pick<Host_sqrtps, 16>(memory);
    case ZYDIS_MNEMONIC_SQRTPD:
      return pick<Host_sqrtpd, 16>(memory);
    case ZYDIS_MNEMONIC_SQRTSS:
      return pick<Host_sqrtss, 4>(memory);
    case ZYDIS_MNEMONIC_SQRTSD:
      return pick<Host_sqrtsd, 8>(memory);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
