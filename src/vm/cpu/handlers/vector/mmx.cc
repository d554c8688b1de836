// MMX: 64-bit vectors in the significands of the x87 registers.
//
// Every instruction that accesses one marks all registers valid and sets the top of the stack to register 0.
// A written register gets an exponent of all ones. EMMS marks all registers empty.
#include "vm/cpu/handlers/vector/packed_integer.h"

namespace slalom::vm {
namespace {

using V = __m128i;

// Loads the second operand: a register, or `Memory` zero-extended.
template <class Memory>
bool load_mmx_source(Cpu& cpu, const Op* op, uint64_t& value) {
  if (op->extra == 0) {
    value = get_mmx(cpu, op->src);
    return true;
  }
  Memory loaded;
  if (!load_operand(cpu, op, loaded)) return false;
  value = loaded;
  return true;
}

template <class Operation, class Memory>
const Op* packed(Cpu& cpu, const Op* op) {
  uint64_t b;
  if (!mmx_ready(cpu) || !load_mmx_source<Memory>(cpu, op, b)) return stop(cpu, op);
  enter_mmx(cpu);
  set_mmx(cpu, op->dst, low_of(Operation{}(low_only(get_mmx(cpu, op->dst)), low_only(b))));
  NEXT;
}

template <class Operation>
const Op* shift_by_immediate(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  const V count = low_only(static_cast<uint8_t>(op->immediate));
  set_mmx(cpu, op->dst, low_of(Operation{}(low_only(get_mmx(cpu, op->dst)), count)));
  NEXT;
}

const Op* shuffle_words(Cpu& cpu, const Op* op) {
  uint64_t b;
  if (!mmx_ready(cpu) || !load_mmx_source<uint64_t>(cpu, op, b)) return stop(cpu, op);
  enter_mmx(cpu);
  uint64_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= ((b >> (16 * ((op->immediate >> (2 * i)) & 3))) & 0xffff) << (16 * i);
  set_mmx(cpu, op->dst, result);
  NEXT;
}

template <Source source>
const Op* insert_word(Cpu& cpu, const Op* op) {
  uint16_t word;
  if (!mmx_ready(cpu) || !load_source<uint16_t, source>(cpu, op, word)) return stop(cpu, op);
  enter_mmx(cpu);
  const unsigned place = 16 * (op->immediate & 3);
  set_mmx(cpu, op->dst, (get_mmx(cpu, op->dst) & ~(uint64_t{0xffff} << place)) | uint64_t{word} << place);
  NEXT;
}

const Op* extract_word(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  set<uint32_t>(cpu, op->dst, static_cast<uint16_t>(get_mmx(cpu, op->src) >> (16 * (op->immediate & 3))));
  NEXT;
}

const Op* sign_mask(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  set<uint32_t>(cpu, op->dst, static_cast<uint32_t>(_mm_movemask_epi8(low_only(get_mmx(cpu, op->src)))));
  NEXT;
}

template <class T>
const Op* load_register(Cpu& cpu, const Op* op) {
  uint64_t value;
  if (!mmx_ready(cpu) || !load_mmx_source<T>(cpu, op, value)) return stop(cpu, op);
  enter_mmx(cpu);
  set_mmx(cpu, op->dst, value);
  NEXT;
}

template <class T>
const Op* from_general(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  set_mmx(cpu, op->dst, get<T>(cpu, op->src));
  NEXT;
}

template <class T>
const Op* to_general(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  set<T>(cpu, op->dst, static_cast<T>(get_mmx(cpu, op->src)));
  NEXT;
}

template <class T>
const Op* to_memory(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu) || !store_operand(cpu, op, static_cast<T>(get_mmx(cpu, op->src)))) return stop(cpu, op);
  enter_mmx(cpu);
  NEXT;
}

const Op* store_masked(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  const uint64_t data = get_mmx(cpu, op->dst), mask = get_mmx(cpu, op->src);
  if (!store_selected_bytes(cpu, op, 8, {data, 0}, {mask, 0})) return stop(cpu, op);
  enter_mmx(cpu);
  NEXT;
}

const Op* emms(Cpu& cpu, const Op* op) {
  if (!mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  cpu.regs.fpu.valid = 0;
  NEXT;
}

template <class T>
Handler moved(const Instruction& in) {
  if (in.is_memory(0)) return to_memory<T>;
  if (!is_mmx(in, 0)) return to_general<T>;
  return in.is_memory(1) || is_mmx(in, 1) ? load_register<T> : from_general<T>;
}

Handler select_mmx_shuffle(const Instruction& in) {
  const auto pick = [](auto operation) -> Handler { return packed<decltype(operation), uint64_t>; };
  const auto pick_short = [](auto operation) -> Handler { return packed<decltype(operation), uint32_t>; };
  switch (in.mnemonic()) {
    // One packing instruction of XMM registers takes both operands, side by side.
    case ZYDIS_MNEMONIC_PACKSSWB:
      return pick([](V a, V b) { return _mm_packs_epi16(_mm_unpacklo_epi64(a, b), a); });
    case ZYDIS_MNEMONIC_PACKSSDW:
      return pick([](V a, V b) { return _mm_packs_epi32(_mm_unpacklo_epi64(a, b), a); });
    case ZYDIS_MNEMONIC_PACKUSWB:
      return pick([](V a, V b) { return _mm_packus_epi16(_mm_unpacklo_epi64(a, b), a); });
    // The low unpacking of XMM registers contains the high unpacking of MMX in its upper half.
    case ZYDIS_MNEMONIC_PUNPCKHBW:
      return pick([](V a, V b) { return _mm_srli_si128(_mm_unpacklo_epi8(a, b), 8); });
    case ZYDIS_MNEMONIC_PUNPCKHWD:
      return pick([](V a, V b) { return _mm_srli_si128(_mm_unpacklo_epi16(a, b), 8); });
    case ZYDIS_MNEMONIC_PUNPCKHDQ:
      return pick([](V a, V b) { return _mm_srli_si128(_mm_unpacklo_epi32(a, b), 8); });
    // These read only as much memory as they need.
    case ZYDIS_MNEMONIC_PUNPCKLBW:
      return pick_short([](V a, V b) { return _mm_unpacklo_epi8(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLWD:
      return pick_short([](V a, V b) { return _mm_unpacklo_epi16(a, b); });
    case ZYDIS_MNEMONIC_PUNPCKLDQ:
      return pick_short([](V a, V b) { return _mm_unpacklo_epi32(a, b); });
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_mmx(Instruction& in, Op& op) {
  // Includes the MMX instructions of SSE and SSE2. CPUID does not advertise later ones (PABS and so on).
  switch (in.info.meta.isa_set) {
    case ZYDIS_ISA_SET_PENTIUMMMX:
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSE2MMX:
      break;
    default:
      return nullptr;
  }
  if (in.mnemonic() != ZYDIS_MNEMONIC_EMMS && !is_mmx(in, 0) && !is_mmx(in, 1)) return nullptr;
  take_operands(in, op);
  op.extra = in.visible() > 1 && in.is_memory(1) ? 1 : 0;
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_EMMS:
      return emms;
    case ZYDIS_MNEMONIC_MOVD:
      return moved<uint32_t>(in);
    case ZYDIS_MNEMONIC_MOVQ:
      return moved<uint64_t>(in);
    case ZYDIS_MNEMONIC_MOVNTQ:
      return to_memory<uint64_t>;
    case ZYDIS_MNEMONIC_MASKMOVQ:
      take_masked_destination(in, op);
      return store_masked;
    case ZYDIS_MNEMONIC_PSHUFW:
      return shuffle_words;
    case ZYDIS_MNEMONIC_PINSRW:
      return in.is_memory(1) ? insert_word<Source::Memory> : insert_word<Source::Register>;
    case ZYDIS_MNEMONIC_PEXTRW:
      return extract_word;
    case ZYDIS_MNEMONIC_PMOVMSKB:
      return sign_mask;
    default:
      break;
  }
  if (in.visible() > 1 && in.is_immediate(1)) {
    op.immediate = in.immediate(1);
    return packed_shift(in.mnemonic(),
                        [](auto operation) -> Handler { return shift_by_immediate<decltype(operation)>; });
  }
  if (const Handler handler = select_mmx_shuffle(in)) return handler;
  const auto pick = [](auto operation) -> Handler { return packed<decltype(operation), uint64_t>; };
  if (const Handler handler = packed_integer(in.mnemonic(), pick)) return handler;
  return packed_shift(in.mnemonic(), pick);
}

}  // namespace slalom::vm
