// Instructions that move lanes: packing, unpacking, shuffles, single words, and sign masks.
#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {
namespace {

using V = __m128i;

template <class Operation, bool memory>
const Op* packed(Cpu& cpu, const Op* op) {
  V b;
  if (!sse_ready(cpu) || !load_xmm_source<16, memory>(cpu, op, b)) return stop(cpu, op);
  set_xmm(cpu, op->dst, Operation{}(get_xmm(cpu, op->dst), b));
  NEXT;
}

// The host's shuffles need the immediate at compile time. Here it is only known at run time, so these move
// lanes one by one.
template <class Lane>
struct Lanes {
  Lane at[16 / sizeof(Lane)];

  explicit Lanes(V value) { _mm_storeu_si128(reinterpret_cast<V*>(at), value); }
  V vector() const { return _mm_loadu_si128(reinterpret_cast<const V*>(at)); }
};

struct Dwords {
  V operator()(V, V b, uint8_t order) const {
    const Lanes<uint32_t> from(b);
    Lanes<uint32_t> to(b);
    for (unsigned i = 0; i < 4; ++i) to.at[i] = from.at[(order >> (2 * i)) & 3];
    return to.vector();
  }
};

template <unsigned first>
struct Words {
  V operator()(V, V b, uint8_t order) const {
    const Lanes<uint16_t> from(b);
    Lanes<uint16_t> to(b);
    for (unsigned i = 0; i < 4; ++i) to.at[first + i] = from.at[first + ((order >> (2 * i)) & 3)];
    return to.vector();
  }
};

struct Singles {
  V operator()(V a, V b, uint8_t order) const {
    const Lanes<uint32_t> low(a), high(b);
    Lanes<uint32_t> to(a);
    for (unsigned i = 0; i < 4; ++i) to.at[i] = (i < 2 ? low : high).at[(order >> (2 * i)) & 3];
    return to.vector();
  }
};

struct Doubles {
  V operator()(V a, V b, uint8_t order) const {
    Lanes<uint64_t> to(a);
    to.at[0] = Lanes<uint64_t>(a).at[order & 1];
    to.at[1] = Lanes<uint64_t>(b).at[(order >> 1) & 1];
    return to.vector();
  }
};

template <class Operation, bool memory>
const Op* shuffle(Cpu& cpu, const Op* op) {
  V b;
  if (!sse_ready(cpu) || !load_xmm_source<16, memory>(cpu, op, b)) return stop(cpu, op);
  set_xmm(cpu, op->dst, Operation{}(get_xmm(cpu, op->dst), b, static_cast<uint8_t>(op->immediate)));
  NEXT;
}

template <bool memory>
const Op* insert_word(Cpu& cpu, const Op* op) {
  uint16_t word;
  if (!sse_ready(cpu) || !load_source < uint16_t,
      memory ? Source::Memory : Source::Register > (cpu, op, word))
    return stop(cpu, op);
  Lanes<uint16_t> lanes(get_xmm(cpu, op->dst));
  lanes.at[op->immediate & 7] = word;
  set_xmm(cpu, op->dst, lanes.vector());
  NEXT;
}

const Op* extract_word(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  set<uint32_t>(cpu, op->dst, Lanes<uint16_t>(get_xmm(cpu, op->src)).at[op->immediate & 7]);
  NEXT;
}

template <class Mask>
const Op* sign_mask(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  set<uint32_t>(cpu, op->dst, static_cast<uint32_t>(Mask{}(get_xmm(cpu, op->src))));
  NEXT;
}
template <class Mask>
Handler pick_mask(Mask) {
  return sign_mask<Mask>;
}

template <class Operation>
Handler pick_shuffle(bool memory) {
  return memory ? shuffle<Operation, true> : shuffle<Operation, false>;
}

}  // namespace

Handler select_sse_shuffle(Instruction& in, Op& op) {
  if (!is_xmm(in, 0) && !(in.visible() > 1 && is_xmm(in, 1))) return nullptr;
  take_operands(in, op);
  const bool memory = in.is_memory(1);
  const auto pick = [memory](auto operation) -> Handler {
    using Operation = decltype(operation);
    return memory ? packed<Operation, true> : packed<Operation, false>;
  };
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_PACKSSWB:
      return pick([](V a, V b) { return _mm_packs_epi16(a, b); });
    case ZYDIS_MNEMONIC_PACKSSDW:
      return pick([](V a, V b) { return _mm_packs_epi32(a, b); });
    case ZYDIS_MNEMONIC_PACKUSWB:
      return pick([](V a, V b) { return _mm_packus_epi16(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKHBW:
      return pick([](V a, V b) { return _mm_unpackhi_epi8(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKHWD:
      return pick([](V a, V b) { return _mm_unpackhi_epi16(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKHDQ:
    case ZYDIS_MNEMONIC_UNPCKHPS:
      return pick([](V a, V b) { return _mm_unpackhi_epi32(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKHPD:
      return pick([](V a, V b) { return _mm_unpackhi_epi64(a, b); });
    case ZYDIS_MNEMONIC_UNPCKLPS:
      return pick([](V a, V b) { return _mm_unpacklo_epi32(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
      return pick([](V a, V b) { return _mm_unpacklo_epi64(a, b); });
    case ZYDIS_MNEMONIC_PSHUFD:
      return pick_shuffle<Dwords>(memory);
    case ZYDIS_MNEMONIC_PSHUFLW:
      return pick_shuffle<Words<0>>(memory);
    case ZYDIS_MNEMONIC_PSHUFHW:
      return pick_shuffle<Words<4>>(memory);
    case ZYDIS_MNEMONIC_SHUFPS:
      return pick_shuffle<Singles>(memory);
    case ZYDIS_MNEMONIC_SHUFPD:
      return pick_shuffle<Doubles>(memory);
    case ZYDIS_MNEMONIC_PINSRW:
      return memory ? insert_word<true> : insert_word<false>;
    case ZYDIS_MNEMONIC_PEXTRW:
      return extract_word;
    case ZYDIS_MNEMONIC_PMOVMSKB:
      return pick_mask([](V a) { return _mm_movemask_epi8(a); });
    case ZYDIS_MNEMONIC_MOVMSKPS:
      return pick_mask([](V a) { return _mm_movemask_ps(_mm_castsi128_ps(a)); });
    case ZYDIS_MNEMONIC_MOVMSKPD:
      return pick_mask([](V a) { return _mm_movemask_pd(_mm_castsi128_pd(a)); });
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
