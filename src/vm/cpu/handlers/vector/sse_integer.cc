// SSE2's integer operations and SSE's bitwise ones: without rounding and floating point exceptions.
#include "vm/cpu/handlers/vector/packed_integer.h"

namespace slalom::vm {
namespace {

template <class Operation, bool memory>
const Op* packed(Cpu& cpu, const Op* op) {
  __m128i b;
  if (!sse_ready(cpu) || !load_xmm_source<16, memory>(cpu, op, b)) return stop(cpu, op);
  set_xmm(cpu, op->dst, Operation{}(get_xmm(cpu, op->dst), b));
  NEXT;
}

template <class Operation>
const Op* shift_by_immediate(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  set_xmm(cpu, op->dst, Operation{}(get_xmm(cpu, op->dst), low_only(static_cast<uint8_t>(op->immediate))));
  NEXT;
}

// Shifts the whole register by bytes. Counts of 16 and more clear it.
template <bool left>
const Op* shift_bytes(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  const unsigned bits =
      static_cast<uint8_t>(op->immediate) > 15 ? 128 : static_cast<unsigned>(op->immediate) * 8;
  const Xmm& old = cpu.regs.xmm[op->dst];
  auto value = static_cast<unsigned __int128>(old.high) << 64 | old.low;
  value = bits == 128 ? 0 : left ? value << bits : value >> bits;
  cpu.regs.xmm[op->dst] = {static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64)};
  NEXT;
}

Handler select_bitwise(ZydisMnemonic mnemonic, bool memory) {
  using V = __m128i;
  const auto pick = [memory](auto operation) -> Handler {
    using Operation = decltype(operation);
    return memory ? packed<Operation, true> : packed<Operation, false>;
  };
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_ANDPS:
    case ZYDIS_MNEMONIC_ANDPD:
      return pick([](V a, V b) { return _mm_and_si128(a, b); });
    case ZYDIS_MNEMONIC_ANDNPS:
    case ZYDIS_MNEMONIC_ANDNPD:
      return pick([](V a, V b) { return _mm_andnot_si128(a, b); });
    case ZYDIS_MNEMONIC_ORPS:
    case ZYDIS_MNEMONIC_ORPD:
      return pick([](V a, V b) { return _mm_or_si128(a, b); });
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
      return pick([](V a, V b) { return _mm_xor_si128(a, b); });
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_sse_integer(Instruction& in, Op& op) {
  if (!is_xmm(in, 0)) return nullptr;
  take_operands(in, op);
  if (in.is_immediate(1)) {
    op.immediate = in.immediate(1);
    if (in.mnemonic() == ZYDIS_MNEMONIC_PSLLDQ) return shift_bytes<true>;
    if (in.mnemonic() == ZYDIS_MNEMONIC_PSRLDQ) return shift_bytes<false>;
    return packed_shift(in.mnemonic(),
                        [](auto operation) -> Handler { return shift_by_immediate<decltype(operation)>; });
  }
  const bool memory = in.is_memory(1);
  const auto pick = [memory](auto operation) -> Handler {
    using Operation = decltype(operation);
    return memory ? packed<Operation, true> : packed<Operation, false>;
  };
  if (const Handler handler = packed_integer(in.mnemonic(), pick)) return handler;
  if (const Handler handler = packed_shift(in.mnemonic(), pick)) return handler;
  return select_bitwise(in.mnemonic(), memory);
}

}  // namespace slalom::vm
