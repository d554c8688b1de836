// Moves between XMM registers, general registers and memory, fences, and hints.
#include "vm/cpu/handlers/vector/vector.h"

namespace slalom::vm {
namespace {

using V = __m128i;

const Op* copy(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  cpu.regs.xmm[op->dst] = cpu.regs.xmm[op->src];
  NEXT;
}

template <Alignment alignment>
const Op* load_all(Cpu& cpu, const Op* op) {
  V value;
  if (!sse_ready(cpu) || !load_vector<alignment>(cpu, op, value)) return stop(cpu, op);
  set_xmm(cpu, op->dst, value);
  NEXT;
}

template <Alignment alignment>
const Op* store_all(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu) || !store_vector<alignment>(cpu, op, get_xmm(cpu, op->src))) return stop(cpu, op);
  NEXT;
}

template <Alignment alignment>
Handler whole(Instruction& in) {
  if (in.is_memory(0)) return store_all<alignment>;
  return in.is_memory(1) ? load_all<alignment> : copy;
}

// Loads the low part of the destination from memory or a general register, and clears the rest.
template <class T, Source source>
const Op* load_low(Cpu& cpu, const Op* op) {
  T value;
  if (!sse_ready(cpu) || !load_source<T, source>(cpu, op, value)) return stop(cpu, op);
  cpu.regs.xmm[op->dst] = {value, 0};
  NEXT;
}

template <class T>
const Op* store_low(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu) || !store_operand(cpu, op, static_cast<T>(cpu.regs.xmm[op->src].low)))
    return stop(cpu, op);
  NEXT;
}

template <class T>
const Op* low_to_general(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  set<T>(cpu, op->dst, static_cast<T>(cpu.regs.xmm[op->src].low));
  NEXT;
}

// Between registers, MOVSS and MOVSD keep the rest of the destination; MOVQ clears it.
template <class T>
const Op* merge_low(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  const auto value = static_cast<T>(cpu.regs.xmm[op->src].low);
  std::memcpy(&cpu.regs.xmm[op->dst].low, &value, sizeof(T));
  NEXT;
}
const Op* copy_low(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  cpu.regs.xmm[op->dst] = {cpu.regs.xmm[op->src].low, 0};
  NEXT;
}

template <class T>
Handler scalar(Instruction& in) {
  if (in.is_memory(0)) return store_low<T>;
  return in.is_memory(1) ? load_low<T, Source::Memory> : merge_low<T>;
}

template <bool high>
const Op* load_half(Cpu& cpu, const Op* op) {
  uint64_t value;
  if (!sse_ready(cpu) || !load_operand(cpu, op, value)) return stop(cpu, op);
  (high ? cpu.regs.xmm[op->dst].high : cpu.regs.xmm[op->dst].low) = value;
  NEXT;
}

template <bool high>
const Op* store_half(Cpu& cpu, const Op* op) {
  const Xmm& value = cpu.regs.xmm[op->src];
  if (!sse_ready(cpu) || !store_operand(cpu, op, high ? value.high : value.low)) return stop(cpu, op);
  NEXT;
}

const Op* high_to_low(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  cpu.regs.xmm[op->dst].low = cpu.regs.xmm[op->src].high;
  NEXT;
}

const Op* low_to_high(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  cpu.regs.xmm[op->dst].high = cpu.regs.xmm[op->src].low;
  NEXT;
}

// MOVNTI uses no vector register, so it works even if SSE is disabled.
template <class T>
const Op* store_general(Cpu& cpu, const Op* op) {
  if (!store_operand(cpu, op, get<T>(cpu, op->src))) return stop(cpu, op);
  NEXT;
}

const Op* store_masked_xmm(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu)) return stop(cpu, op);
  const Xmm &data = cpu.regs.xmm[op->dst], &mask = cpu.regs.xmm[op->src];
  if (!store_selected_bytes(cpu, op, 16, {data.low, data.high}, {mask.low, mask.high})) return stop(cpu, op);
  NEXT;
}

const Op* mmx_to_xmm(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu) || !mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  cpu.regs.xmm[op->dst] = {get_mmx(cpu, op->src), 0};
  NEXT;
}

const Op* xmm_to_mmx(Cpu& cpu, const Op* op) {
  if (!sse_ready(cpu) || !mmx_ready(cpu)) return stop(cpu, op);
  enter_mmx(cpu);
  set_mmx(cpu, op->dst, cpu.regs.xmm[op->src].low);
  NEXT;
}

// One CPU runs at a time and nothing is cached, so accesses are always in program order.
const Op* nothing(Cpu& cpu, const Op* op) {
  NEXT;
}

template <class T>
Handler moved_low(Instruction& in) {
  if (is_mmx(in, 0) || is_mmx(in, 1)) return nullptr;
  if (in.is_memory(0)) return store_low<T>;
  if (in.is_memory(1)) return load_low<T, Source::Memory>;
  if (!is_xmm(in, 0)) return low_to_general<T>;
  return is_xmm(in, 1) ? copy_low : load_low<T, Source::Register>;
}

}  // namespace

void take_masked_destination(const Instruction& in, Op& op) {
  for (unsigned i = 0; i < in.info.operand_count; ++i) {
    if (!in.is_memory(i)) continue;
    const auto segment =
        static_cast<uint8_t>(in.operand(i).mem.segment - ZYDIS_REGISTER_ES);  // a SegmentName
    op.base = kRdi;
    op.index = kZero;
    op.scale = 0;
    op.displacement = 0;
    if (!in.mode.is_long() || in.address_size() != 8)
      op.segment = static_cast<uint8_t>(kLegacySegments + segment);
    else
      op.segment = segment == kFs ? kWithFs : segment == kGs ? kWithGs : kFlat;
  }
}

bool store_selected_bytes(Cpu& cpu, const Op* op, unsigned size, Bytes16 data, Bytes16 mask) {
  uint8_t bytes[16], chosen[16];
  std::memcpy(bytes, &data, sizeof bytes);
  std::memcpy(chosen, &mask, sizeof chosen);
  uint64_t address;
  if (!address_of<AccessKind::Write>(cpu, op, size, address)) return false;
  for (unsigned i = 0; i < size; ++i)
    if ((chosen[i] & 0x80) != 0 && !check_writable(cpu, address + i, 1)) return false;
  for (unsigned i = 0; i < size; ++i)
    if ((chosen[i] & 0x80) != 0 && !store(cpu, op, address + i, bytes[i])) return false;
  return true;
}

Handler select_sse_move(Instruction& in, Op& op) {
  take_operands(in, op);
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVNTPS:
    case ZYDIS_MNEMONIC_MOVNTPD:
    case ZYDIS_MNEMONIC_MOVNTDQ:
      return whole<Alignment::Required>(in);
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQU:
      return whole<Alignment::Any>(in);
    case ZYDIS_MNEMONIC_MOVSS:
      return scalar<uint32_t>(in);
    case ZYDIS_MNEMONIC_MOVSD:
      return scalar<uint64_t>(in);
    case ZYDIS_MNEMONIC_MOVD:
      return moved_low<uint32_t>(in);
    case ZYDIS_MNEMONIC_MOVQ:
      return moved_low<uint64_t>(in);
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
      return in.is_memory(0) ? store_half<false> : load_half<false>;
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
      return in.is_memory(0) ? store_half<true> : load_half<true>;
    case ZYDIS_MNEMONIC_MOVHLPS:
      return high_to_low;
    case ZYDIS_MNEMONIC_MOVLHPS:
      return low_to_high;
    case ZYDIS_MNEMONIC_MOVNTI:
      return in.size(1) == 8 ? store_general<uint64_t> : store_general<uint32_t>;
    case ZYDIS_MNEMONIC_MASKMOVDQU:
      take_masked_destination(in, op);
      return store_masked_xmm;
    case ZYDIS_MNEMONIC_MOVQ2DQ:
      return mmx_to_xmm;
    case ZYDIS_MNEMONIC_MOVDQ2Q:
      return xmm_to_mmx;
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
      return nothing;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
