#include "generate.h"

#include <algorithm>

#include "favour.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {

void Generator::fill(Backgrounds& backgrounds, uint64_t seed) {
  Rng rng(seed, ~uint64_t{0});
  Values values(rng);
  for (Background& one : backgrounds) values.background(one);
  backgrounds[kZeros].fill(0);
  for (Background& one : backgrounds)
    for (size_t i = kWritable; i < one.size(); ++i) one[i] = static_cast<uint8_t>(mix(i));
}

std::vector<uint8_t> Generator::encode(const Form& form) {
  std::vector<uint8_t> bytes;
  constexpr uint8_t segments[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65};
  if (form.segment != 0)
    bytes.push_back(form.segment);
  else if (values_.chance(4))
    bytes.push_back(segments[values_.below(6)]);
  if (form.lock) bytes.push_back(0xf0);
  if (form.operand_size) bytes.push_back(0x66);
  if (form.repeat != 0) bytes.push_back(form.repeat);
  if (form.address_size || values_.chance(form.mode == Mode::k64 ? 5 : 2)) bytes.push_back(0x67);
  for (size_t i = bytes.size(); i > 1; --i)
    std::swap(bytes[i - 1], bytes[values_.below(static_cast<unsigned>(i))]);
  if (form.mode == Mode::k64 && (form.wide || values_.chance(50)))
    bytes.push_back(static_cast<uint8_t>(0x40 | (form.wide ? 8 : 0) | values_.below(8)));
  if (form.two_byte) bytes.push_back(0x0f);
  bytes.push_back(form.opcode);
  if (form.has_modrm) {
    const unsigned mod = form.memory ? values_.below(3) : 3;
    const unsigned reg = form.digit >= 0 ? static_cast<unsigned>(form.digit) : values_.below(8);
    const unsigned rm = form.rm >= 0 ? static_cast<unsigned>(form.rm) : values_.below(8);
    bytes.push_back(static_cast<uint8_t>(mod << 6 | reg << 3 | rm));
  }
  while (bytes.size() < 15) bytes.push_back(static_cast<uint8_t>(values_.any()));
  return bytes;
}

// Encodes the same instruction again, with an encoding chosen by Zydis.
bool Generator::reencode(const Form& form, std::vector<uint8_t>& bytes) {
  const auto in = decode(form.mode, bytes);
  ZydisEncoderRequest request;
  if (!in || !ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(
                 &in->info, in->operands, in->info.operand_count_visible, &request)))
    return false;
  uint8_t buffer[ZYDIS_MAX_INSTRUCTION_LENGTH];
  ZyanUSize size = sizeof buffer;
  if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, buffer, &size))) return false;
  const auto again = decode(form.mode, {buffer, size});
  if (!again || signature(*again) != form.signature) return false;
  bytes.assign(buffer, buffer + size);
  return true;
}

void Generator::place(Case& one, std::vector<uint8_t>& bytes) {
  one.length = static_cast<uint8_t>(std::min<size_t>(bytes.size(), 15));
  std::copy_n(bytes.begin(), one.length, one.bytes.begin());
  const unsigned kind = values_.below(100);
  uint64_t at = 0x40 + values_.below(static_cast<unsigned>(kCodeSize) - 0x80);
  if (kind < 3) at = kPage - values_.below(16);
  if (kind == 3) at = kCodeSize - one.length;
  if (kind == 4) at = kCodeSize - 1 - values_.below(one.length);
  one.state.rip = kCode + std::min(at, kCodeSize - 1);
}

void Generator::aim(Case& one, const Decoded& in, const ZydisDecodedOperand& operand) {
  const auto& memory = operand.mem;
  const bool is_stack = ZydisRegisterGetId(memory.base) == kRsp && memory.base != ZYDIS_REGISTER_NONE;
  if (is_stack && operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN) return;
  const unsigned size = std::clamp<unsigned>(operand.size / 8, 1, 512);
  const bool aligned = in.locks() || values_.chance(size >= 16 ? 90 : 30);
  const uint64_t target = values_.address(size, aligned);
  const uint64_t offset = target - segment_base(one, memory.segment);
  const auto& displacement = in.info.raw.disp;
  if (memory.base == ZYDIS_REGISTER_NONE || memory.base == ZYDIS_REGISTER_RIP ||
      memory.base == ZYDIS_REGISTER_EIP) {
    uint64_t value = offset;
    if (memory.base != ZYDIS_REGISTER_NONE) value -= one.state.rip + one.length;
    if (memory.index != ZYDIS_REGISTER_NONE)
      value -= one.state.gpr[static_cast<size_t>(ZydisRegisterGetId(memory.index))] * memory.scale;
    std::memcpy(one.bytes.data() + displacement.offset, &value, displacement.size / 8);
    return;
  }
  const auto base = static_cast<size_t>(ZydisRegisterGetId(memory.base));
  uint64_t value = offset - (memory.disp.has_displacement ? static_cast<uint64_t>(memory.disp.value) : 0);
  if (memory.index == memory.base) {
    value /= 1u + memory.scale;
  } else if (memory.index != ZYDIS_REGISTER_NONE) {
    value -= one.state.gpr[static_cast<size_t>(ZydisRegisterGetId(memory.index))] * memory.scale;
  }
  if (in.info.address_width == 32 && one.mode == Mode::k64)
    value = (values_.any() << 32) | static_cast<uint32_t>(value);
  if (in.info.address_width == 16) return;
  one.state.gpr[base] = one.mode == Mode::k64 ? value : static_cast<uint32_t>(value);
}

void Generator::fill_state(Case& one, const Decoded& in) {
  CpuState& s = one.state;
  one.background = static_cast<uint8_t>(values_.below(kBackgrounds));
  one.patches = 0;
  for (uint64_t& reg : s.gpr) reg = values_.integer();
  if (values_.chance(60)) s.gpr[kRbp] = values_.address(8, true);
  s.gpr[kRsp] = values_.address(8, values_.chance(80));
  s.flags = values_.flags();
  const bool mmx =
      in.info.meta.isa_ext == ZYDIS_ISA_EXT_MMX || (in.info.meta.isa_set == ZYDIS_ISA_SET_SSE2MMX);
  values_.floats(s.floats, in.info.meta.isa_ext == ZYDIS_ISA_EXT_X87 || values_.chance(10),
                 mmx || values_.chance(10));
  if (one.mode == Mode::k32)
    for (size_t i = 0; i < 16; ++i) s.gpr[i] = i < 8 ? static_cast<uint32_t>(s.gpr[i]) : 0;

  favour_registers(one, in, values_);
  for (unsigned i = 0; i < in.info.operand_count; ++i)
    if (in.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) aim(one, in, in.operands[i]);
  // Aiming may have changed a displacement.
  const auto aimed = decode(one.mode, {one.bytes.data(), one.length});
  favour_memory(one, aimed ? *aimed : in, values_);
  if (one.mode == Mode::k32)
    for (size_t i = 0; i < 8; ++i) s.gpr[i] = static_cast<uint32_t>(s.gpr[i]);
}

bool Generator::make(const Form& form, Case& one) {
  one.mode = form.mode;
  for (int attempt = 0; attempt < 30; ++attempt) {
    std::vector<uint8_t> bytes = encode(form);
    auto in = decode(form.mode, bytes);
    if (!in || signature(*in) != form.signature || comparable(*in) != Comparable::Yes) continue;
    bytes.resize(in->info.length);
    if (values_.chance(15) && form.segment == 0 && !form.address_size && reencode(form, bytes))
      in = decode(form.mode, bytes);
    place(one, bytes);
    // Edge values for immediates.
    for (const auto& immediate : in->info.raw.imm)
      if (immediate.size != 0 && values_.chance(60)) {
        const uint64_t value = values_.integer();
        std::memcpy(one.bytes.data() + immediate.offset, &value, immediate.size / 8);
      }
    in = decode(form.mode, {one.bytes.data(), one.length});
    if (!in || in->info.length != one.length || comparable(*in) != Comparable::Yes) continue;
    fill_state(one, *in);
    in = decode(form.mode, {one.bytes.data(), one.length});
    if (in && in->info.length == one.length && comparable(*in) == Comparable::Yes && harmless(one, *in))
      return true;
  }
  return false;
}

bool Generator::mutated(const Form& form, Case& one) {
  one.mode = form.mode;
  for (int attempt = 0; attempt < 30; ++attempt) {
    std::vector<uint8_t> bytes = encode(form);
    for (unsigned changes = 1 + values_.below(3); changes > 0; --changes) {
      const unsigned at = values_.below(6);
      switch (values_.below(4)) {
        case 0:
          bytes[at] ^= static_cast<uint8_t>(1u << values_.below(8));
          break;
        case 1:
          bytes[at] = static_cast<uint8_t>(values_.any());
          break;
        case 2:
          bytes.insert(bytes.begin() + at, static_cast<uint8_t>(values_.any()));
          break;
        default: {
          constexpr uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66,
                                          0x67, 0xf0, 0xf2, 0xf3, 0x48, 0x44};
          bytes.insert(bytes.begin(), prefixes[values_.below(sizeof prefixes)]);
        }
      }
    }
    bytes.resize(15);
    auto in = decode(form.mode, bytes);
    if (in) {
      if (comparable(*in) == Comparable::No) continue;
      bytes.resize(in->info.length);
    } else if (!surely_invalid(form.mode, bytes)) {
      continue;
    }
    place(one, bytes);
    if (!in) {
      // CPUs differ in how far they read before they fault.
      one.state.rip = std::min(one.state.rip, kCode + kCodeSize - 16);
      Decoded nothing{};
      nothing.info.raw.modrm.mod = 3;
      fill_state(one, nothing);
      return true;
    }
    fill_state(one, *in);
    in = decode(form.mode, {one.bytes.data(), one.length});
    if (in && in->info.length == one.length && comparable(*in) != Comparable::No && harmless(one, *in))
      return true;
  }
  return false;
}

}  // namespace slalom::vm::diff
