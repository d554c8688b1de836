// The integer operations that MMX and XMM registers share, each written once.
//
// An MMX operation is the XMM operation on operands whose upper halves are zero; only the lower half of the
// result is kept. Operations for which that does not hold (packing, unpacking from the upper half) are in
// sse_shuffle.cc and mmx.cc.
#pragma once

#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {

// Calls `pick` with a stateless callable that computes the operation. Returns nullptr if there is none for
// the mnemonic.
template <class Pick>
Handler packed_integer(ZydisMnemonic mnemonic, Pick pick) {
  using V = __m128i;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PADDB:
      return pick([](V a, V b) { return _mm_add_epi8(a, b); });
    case ZYDIS_MNEMONIC_PADDW:
      return pick([](V a, V b) { return _mm_add_epi16(a, b); });
    case ZYDIS_MNEMONIC_PADDD:
      return pick([](V a, V b) { return _mm_add_epi32(a, b); });
    case ZYDIS_MNEMONIC_PADDQ:
      return pick([](V a, V b) { return _mm_add_epi64(a, b); });
    case ZYDIS_MNEMONIC_PSUBB:
      return pick([](V a, V b) { return _mm_sub_epi8(a, b); });
    case ZYDIS_MNEMONIC_PSUBW:
      return pick([](V a, V b) { return _mm_sub_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSUBD:
      return pick([](V a, V b) { return _mm_sub_epi32(a, b); });
    case ZYDIS_MNEMONIC_PSUBQ:
      return pick([](V a, V b) { return _mm_sub_epi64(a, b); });
    case ZYDIS_MNEMONIC_PADDSB:
      return pick([](V a, V b) { return _mm_adds_epi8(a, b); });
    case ZYDIS_MNEMONIC_PADDSW:
      return pick([](V a, V b) { return _mm_adds_epi16(a, b); });
    case ZYDIS_MNEMONIC_PADDUSB:
      return pick([](V a, V b) { return _mm_adds_epu8(a, b); });
    case ZYDIS_MNEMONIC_PADDUSW:
      return pick([](V a, V b) { return _mm_adds_epu16(a, b); });
    case ZYDIS_MNEMONIC_PSUBSB:
      return pick([](V a, V b) { return _mm_subs_epi8(a, b); });
    case ZYDIS_MNEMONIC_PSUBSW:
      return pick([](V a, V b) { return _mm_subs_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSUBUSB:
      return pick([](V a, V b) { return _mm_subs_epu8(a, b); });
    case ZYDIS_MNEMONIC_PSUBUSW:
      return pick([](V a, V b) { return _mm_subs_epu16(a, b); });
    case ZYDIS_MNEMONIC_PMULLW:
      return pick([](V a, V b) { return _mm_mullo_epi16(a, b); });
    case ZYDIS_MNEMONIC_PMULHW:
      return pick([](V a, V b) { return _mm_mulhi_epi16(a, b); });
    case ZYDIS_MNEMONIC_PMULHUW:
      return pick([](V a, V b) { return _mm_mulhi_epu16(a, b); });
    case ZYDIS_MNEMONIC_PMULUDQ:
      return pick([](V a, V b) { return _mm_mul_epu32(a, b); });
    case ZYDIS_MNEMONIC_PMADDWD:
      return pick([](V a, V b) { return _mm_madd_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSADBW:
      return pick([](V a, V b) { return _mm_sad_epu8(a, b); });
    case ZYDIS_MNEMONIC_PAVGB:
      return pick([](V a, V b) { return _mm_avg_epu8(a, b); });
    case ZYDIS_MNEMONIC_PAVGW:
      return pick([](V a, V b) { return _mm_avg_epu16(a, b); });
    case ZYDIS_MNEMONIC_PMINUB:
      return pick([](V a, V b) { return _mm_min_epu8(a, b); });
    case ZYDIS_MNEMONIC_PMAXUB:
      return pick([](V a, V b) { return _mm_max_epu8(a, b); });
    case ZYDIS_MNEMONIC_PMINSW:
      return pick([](V a, V b) { return _mm_min_epi16(a, b); });
    case ZYDIS_MNEMONIC_PMAXSW:
      return pick([](V a, V b) { return _mm_max_epi16(a, b); });
    case ZYDIS_MNEMONIC_PAND:
      return pick([](V a, V b) { return _mm_and_si128(a, b); });
    case ZYDIS_MNEMONIC_PANDN:
      return pick([](V a, V b) { return _mm_andnot_si128(a, b); });
    case ZYDIS_MNEMONIC_POR:
      return pick([](V a, V b) { return _mm_or_si128(a, b); });
    case ZYDIS_MNEMONIC_PXOR:
      return pick([](V a, V b) { return _mm_xor_si128(a, b); });
    case ZYDIS_MNEMONIC_PCMPEQB:
      return pick([](V a, V b) { return _mm_cmpeq_epi8(a, b); });
    case ZYDIS_MNEMONIC_PCMPEQW:
      return pick([](V a, V b) { return _mm_cmpeq_epi16(a, b); });
    case ZYDIS_MNEMONIC_PCMPEQD:
      return pick([](V a, V b) { return _mm_cmpeq_epi32(a, b); });
    case ZYDIS_MNEMONIC_PCMPGTB:
      return pick([](V a, V b) { return _mm_cmpgt_epi8(a, b); });
    case ZYDIS_MNEMONIC_PCMPGTW:
      return pick([](V a, V b) { return _mm_cmpgt_epi16(a, b); });
    case ZYDIS_MNEMONIC_PCMPGTD:
      return pick([](V a, V b) { return _mm_cmpgt_epi32(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLBW:
      return pick([](V a, V b) { return _mm_unpacklo_epi8(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLWD:
      return pick([](V a, V b) { return _mm_unpacklo_epi16(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLDQ:
      return pick([](V a, V b) { return _mm_unpacklo_epi32(a, b); });
    default:
      return nullptr;
  }
}

// Shifts. The count is the low 64 bits of b.
template <class Pick>
Handler packed_shift(ZydisMnemonic mnemonic, Pick pick) {
  using V = __m128i;
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_PSLLW:
      return pick([](V a, V b) { return _mm_sll_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSLLD:
      return pick([](V a, V b) { return _mm_sll_epi32(a, b); });
    case ZYDIS_MNEMONIC_PSLLQ:
      return pick([](V a, V b) { return _mm_sll_epi64(a, b); });
    case ZYDIS_MNEMONIC_PSRLW:
      return pick([](V a, V b) { return _mm_srl_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSRLD:
      return pick([](V a, V b) { return _mm_srl_epi32(a, b); });
    case ZYDIS_MNEMONIC_PSRLQ:
      return pick([](V a, V b) { return _mm_srl_epi64(a, b); });
    case ZYDIS_MNEMONIC_PSRAW:
      return pick([](V a, V b) { return _mm_sra_epi16(a, b); });
    case ZYDIS_MNEMONIC_PSRAD:
      return pick([](V a, V b) { return _mm_sra_epi32(a, b); });
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
