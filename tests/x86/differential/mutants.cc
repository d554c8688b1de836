#include "mutants.h"

#include <algorithm>

#include "vm/cpu/blocks.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {
namespace {

bool completed(const Case& one, const Outcome& outcome) {
  return outcome.vector == 3 && outcome.state.rip == one.state.rip + one.length + 1;
}

void carry_from_increment(const Case& one, const Decoded&, Outcome& outcome) {
  if (completed(one, outcome) && (outcome.state.flags & flag::kZeroFlag)) outcome.state.flags |= flag::kCarry;
}

void no_adjust(const Case& one, const Decoded&, Outcome& outcome) {
  if (completed(one, outcome)) outcome.state.flags &= ~flag::kAdjust;
}

void overflow_stays(const Case& one, const Decoded&, Outcome& outcome) {
  if (completed(one, outcome)) outcome.state.flags |= one.state.flags & flag::kOverflow;
}

// A 32-bit result that does not clear the upper half of its register.
void keep_upper_half(const Case& one, const Decoded& in, Outcome& outcome) {
  if (!completed(one, outcome) || in.operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
      in.operands[0].size != 32)
    return;
  const auto reg = static_cast<size_t>(ZydisRegisterGetId(in.operands[0].reg.value)) & 15;
  outcome.state.gpr[reg] |= one.state.gpr[reg] & 0xffffffff00000000;
}

void fault_without_write_bit(const Case&, const Decoded&, Outcome& outcome) {
  if (outcome.vector == 14) outcome.error &= ~2u;
}

void page_of_fault_only(const Case&, const Decoded&, Outcome& outcome) {
  if (outcome.vector == 14) outcome.address &= ~uint64_t{0xfff};
}

void stack_pointer_moves_on_fault(const Case& one, const Decoded&, Outcome& outcome) {
  if (outcome.vector == 14 && outcome.state.rip == one.state.rip) outcome.state.gpr[kRsp] -= 8;
}

void sticky_flag_lost(const Case& one, const Decoded&, Outcome& outcome) {
  if (!completed(one, outcome)) return;
  FloatState& f = outcome.state.floats;
  f.set(FloatState::kMxcsr, f.get<uint32_t>(FloatState::kMxcsr) & ~0x20u);  // precision
}

}  // namespace

bool Mutant::concerns(ZydisMnemonic mnemonic) const {
  return std::find(victims.begin(), victims.end(), mnemonic) != victims.end();
}

void Mutant::change_op(const Case& one, Op& op) const {
  if (donor == ZYDIS_MNEMONIC_INVALID) return;
  const auto in = decode(one.mode, {one.bytes.data(), one.length});
  ZydisEncoderRequest request;
  if (!in || !concerns(in->info.mnemonic) ||
      !ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(&in->info, in->operands,
                                                                   in->info.operand_count_visible, &request)))
    return;
  request.mnemonic = donor;
  uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
  ZyanUSize size = sizeof bytes;
  if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, bytes, &size))) return;
  CodeMode mode;
  mode.bits = one.mode == Mode::k64 ? CodeMode::k64 : CodeMode::k32 | CodeMode::kBigStack;
  const vm::Decoded other = decode_instruction(bytes, static_cast<unsigned>(size), mode, 0, 0);
  op.handler = other.op.handler;
}

void Mutant::change_outcome(const Case& one, Outcome& outcome) const {
  if (spoil == nullptr || !outcome.ended) return;
  const auto in = decode(one.mode, {one.bytes.data(), one.length});
  if (in && concerns(in->info.mnemonic)) spoil(one, *in, outcome);
}

std::span<const Mutant> all_mutants() {
  static const std::vector<Mutant> mutants = {
      {"adc-ignores-carry", "a flag", {ZYDIS_MNEMONIC_ADC}, ZYDIS_MNEMONIC_ADD},
      {"sbb-ignores-borrow", "a flag", {ZYDIS_MNEMONIC_SBB}, ZYDIS_MNEMONIC_SUB},
      {"inc-sets-carry", "a flag", {ZYDIS_MNEMONIC_INC}, {}, carry_from_increment},
      {"add-forgets-adjust", "a flag", {ZYDIS_MNEMONIC_ADD}, {}, no_adjust},
      {"and-keeps-overflow", "a flag", {ZYDIS_MNEMONIC_AND}, {}, overflow_stays},
      {"rol-through-carry", "a flag", {ZYDIS_MNEMONIC_ROL}, ZYDIS_MNEMONIC_RCL},
      {"mov-keeps-upper-half", "a width", {ZYDIS_MNEMONIC_MOV, ZYDIS_MNEMONIC_XOR}, {}, keep_upper_half},
      {"cbw-as-cwde", "a width", {ZYDIS_MNEMONIC_CBW}, ZYDIS_MNEMONIC_CWDE},
      {"stosd-as-stosw", "a width", {ZYDIS_MNEMONIC_STOSD}, ZYDIS_MNEMONIC_STOSW},
      {"sar-as-shr", "a sign", {ZYDIS_MNEMONIC_SAR}, ZYDIS_MNEMONIC_SHR},
      {"movsx-as-movzx", "a sign", {ZYDIS_MNEMONIC_MOVSX}, ZYDIS_MNEMONIC_MOVZX},
      {"idiv-as-div", "a sign", {ZYDIS_MNEMONIC_IDIV}, ZYDIS_MNEMONIC_DIV},
      {"jl-as-jb", "a sign", {ZYDIS_MNEMONIC_JL}, ZYDIS_MNEMONIC_JB},
      {"setle-as-setbe", "a sign", {ZYDIS_MNEMONIC_SETLE}, ZYDIS_MNEMONIC_SETBE},
      {"btr-as-btc", "a bit", {ZYDIS_MNEMONIC_BTR}, ZYDIS_MNEMONIC_BTC},
      {"store-fault-reads", "a fault", {ZYDIS_MNEMONIC_MOV}, {}, fault_without_write_bit},
      {"fault-address-rounded", "a fault", {ZYDIS_MNEMONIC_ADD}, {}, page_of_fault_only},
      {"push-moves-on-fault", "a fault", {ZYDIS_MNEMONIC_PUSH}, {}, stack_pointer_moves_on_fault},
      {"paddsw-wraps", "saturation", {ZYDIS_MNEMONIC_PADDSW}, ZYDIS_MNEMONIC_PADDW},
      {"minps-as-maxps", "a comparison", {ZYDIS_MNEMONIC_MINPS}, ZYDIS_MNEMONIC_MAXPS},
      {"cvttsd2si-rounds", "rounding", {ZYDIS_MNEMONIC_CVTTSD2SI}, ZYDIS_MNEMONIC_CVTSD2SI},
      {"ucomisd-signals", "a NaN", {ZYDIS_MNEMONIC_UCOMISD}, ZYDIS_MNEMONIC_COMISD},
      {"mulpd-stays-exact", "a sticky flag", {ZYDIS_MNEMONIC_MULPD}, {}, sticky_flag_lost},
      {"fsub-reversed", "operand order", {ZYDIS_MNEMONIC_FSUB}, ZYDIS_MNEMONIC_FSUBR},
  };
  return mutants;
}

}  // namespace slalom::vm::diff
