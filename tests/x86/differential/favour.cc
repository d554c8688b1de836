#include "favour.h"

#include <algorithm>
#include <optional>

#include "vm/cpu/registers.h"

namespace slalom::vm::diff {
namespace {

// Writes into the data pages; ignores bytes outside of them.
void put(Case& one, uint64_t address, const void* bytes, unsigned size) {
  if (address < kData || address >= kData + kWritable || one.patches >= one.patch.size()) return;
  Patch& patch = one.patch[one.patches++];
  patch.offset = static_cast<uint16_t>(address - kData);
  patch.size = static_cast<uint16_t>(std::min<uint64_t>(size, kData + kWritable - address));
  std::memcpy(patch.bytes.data(), bytes, patch.size);
}

const ZydisDecodedOperand* memory_of(const Decoded& in) {
  for (unsigned i = 0; i < in.info.operand_count; ++i)
    if (in.operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return &in.operands[i];
  return nullptr;
}

// The register that an operand names in full; -1 if there is none.
int whole_register(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return -1;
  switch (ZydisRegisterGetClass(operand.reg.value)) {
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64:
      return ZydisRegisterGetId(operand.reg.value);
    default:
      return -1;
  }
}

uint64_t code_target(Values& values) {
  return values.chance(85) ? kCode + 0x20 + values.below(static_cast<unsigned>(kCodeSize) - 0x40)
                           : values.integer();
}

bool pops_flags(const Decoded& in) {
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return true;
    default:
      return false;
  }
}

bool takes_selector(const Decoded& in) {
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_LAR:
    case ZYDIS_MNEMONIC_LSL:
    case ZYDIS_MNEMONIC_VERR:
    case ZYDIS_MNEMONIC_VERW:
      return true;
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_POP:
      return in.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
             ZydisRegisterGetClass(in.operands[0].reg.value) == ZYDIS_REGCLASS_SEGMENT;
    default:
      return false;
  }
}

bool is_far(const Decoded& in) {
  return in.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

bool loads_far_pointer(const Decoded& in) {
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_LDS:
    case ZYDIS_MNEMONIC_LES:
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
      return true;
    default:
      return is_far(in);
  }
}

bool is_near_branch(const Decoded& in) {
  const auto category = in.info.meta.category;
  return !is_far(in) && (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR ||
                         category == ZYDIS_CATEGORY_CALL || category == ZYDIS_CATEGORY_RET);
}

void aim_branch(Case& one, const Decoded& in, Values& values) {
  const auto& immediate = in.info.raw.imm[0];
  if (immediate.size == 0 || !immediate.is_relative || !values.chance(85)) return;
  const uint64_t relative = code_target(values) - (one.state.rip + one.length);
  std::memcpy(one.bytes.data() + immediate.offset, &relative, immediate.size / 8);
}

void favour_division(Case& one, const Decoded& in, Values& values) {
  if (!values.chance(70)) return;
  const unsigned bits = in.operands[0].size;
  uint64_t& rax = one.state.gpr[kRax];
  uint64_t& rdx = one.state.gpr[kRdx];
  const bool is_signed = in.info.mnemonic == ZYDIS_MNEMONIC_IDIV;
  if (bits == 8) {
    rax = (rax & ~uint64_t{0xffff}) |
          (is_signed ? static_cast<uint16_t>(static_cast<int8_t>(rax)) : rax & 0xff);
  } else {
    const uint64_t sign = uint64_t{1} << (bits - 1);
    rdx = is_signed && (rax & sign) ? ~uint64_t{0} : 0;
  }
}

void favour_string(Case& one, const Decoded& in, Values& values) {
  uint64_t& count = one.state.gpr[kRcx];
  if (values.chance(93)) count = values.chance(80) ? values.below(20) : values.below(1500);
  if (values.chance(25)) one.state.flags ^= flag::kDirection;
  if (in.info.address_width == 32 && values.chance(40)) count |= values.any() << 32;
}

// Usually an image that FXRSTOR accepts.
void put_float_image(Case& one, uint64_t address, Values& values) {
  FloatState image;
  values.floats(image, true, values.chance(30));
  if (values.chance(5)) image.set<uint32_t>(FloatState::kMxcsr, static_cast<uint32_t>(values.any()));
  if (values.chance(5)) image.set<uint16_t>(FloatState::kControl, static_cast<uint16_t>(values.any()));
  if (values.chance(5)) image.set<uint16_t>(FloatState::kStatus, static_cast<uint16_t>(values.any()));
  put(one, address, image.bytes.data(), 512);
}

// FLDENV's 28 bytes, followed by the additional data of FRSTOR.
void put_environment(Case& one, uint64_t address, unsigned width, Values& values) {
  FloatState image;
  values.floats(image, true, false);
  uint8_t out[108] = {};
  const uint16_t words[3] = {image.get<uint16_t>(FloatState::kControl),
                             image.get<uint16_t>(FloatState::kStatus), static_cast<uint16_t>(values.any())};
  for (int i = 0; i < 3; ++i) std::memcpy(out + static_cast<unsigned>(i) * width, &words[i], 2);
  for (unsigned i = 0; i < 8; ++i) values.extended(out + 7 * width + 10 * i);
  put(one, address, out, 7 * width + 80);
}

void put_operand(Case& one, const ZydisDecodedOperand& operand, uint64_t address, Values& values) {
  uint8_t bytes[16];
  const unsigned size = operand.size / 8;
  const bool is_float = operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT16 ||
                        operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 ||
                        operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT64 ||
                        operand.element_type == ZYDIS_ELEMENT_TYPE_FLOAT80;
  if (operand.element_type == ZYDIS_ELEMENT_TYPE_LONGBCD) {
    for (unsigned i = 0; i < 10; ++i)
      bytes[i] =
          static_cast<uint8_t>(values.chance(97) ? values.below(10) << 4 | values.below(10) : values.any());
    if (values.chance(90)) bytes[9] &= 0x80;
  } else if (size == 10) {
    values.extended(bytes);
  } else if (size == 4 && is_float) {
    const uint32_t value = values.single_bits();
    std::memcpy(bytes, &value, 4);
  } else if (size <= 16) {
    const uint64_t low = is_float ? values.double_bits() : values.integer(), high = values.vector_half();
    std::memcpy(bytes, &low, 8);
    std::memcpy(bytes + 8, &high, 8);
  } else {
    return;
  }
  put(one, address, bytes, size);
}

void put_return_frame(Case& one, const Decoded& in, Values& values) {
  const unsigned width = in.info.operand_width / 8u;
  uint64_t frame[5] = {code_target(values), values.selector(), values.flags() | (values.any() & 0x7202),
                       values.address(8, true), values.selector()};
  if (values.chance(70)) frame[1] = one.mode == Mode::k64 || values.chance(30) ? 0x33 : 0x23;
  if (values.chance(70)) frame[4] = 0x2b;
  uint8_t bytes[40];
  for (unsigned i = 0; i < 5; ++i) std::memcpy(bytes + i * width, &frame[i], width);
  put(one, one.state.gpr[kRsp], bytes, 5 * width);
}

// The 16 bits at an address, unless they come from a background.
std::optional<uint16_t> known_word(const Case& one, uint64_t address) {
  for (unsigned i = 0; i < one.patches; ++i) {
    const uint64_t start = kData + one.patch[i].offset;
    if (address < start || address + 2 > start + one.patch[i].size) continue;
    uint16_t word;
    std::memcpy(&word, one.patch[i].bytes.data() + (address - start), 2);
    return word;
  }
  return std::nullopt;
}

// The host's descriptor table has entries that programs may use: for threads, and for the number of the CPU.
bool meets_host_descriptor(const Case& one, const Decoded& in) {
  if (!takes_selector(in)) return false;
  std::optional<uint16_t> selector;
  if (const int reg = whole_register(in.operands[in.info.operand_count_visible - 1u]); reg >= 0) {
    selector = static_cast<uint16_t>(one.state.gpr[static_cast<size_t>(reg)]);
  } else {
    const bool pops = in.info.mnemonic == ZYDIS_MNEMONIC_POP;
    const ZydisDecodedOperand* memory = memory_of(in);
    if (!pops && memory == nullptr) return false;
    const uint64_t address = pops ? one.state.gpr[kRsp] : effective_address(one, in, *memory);
    selector = known_word(one, address);
    // Unknown contents: a background, or the read-only page.
    if (!selector) return address + 1 >= kData && address < kData + kDataSize;
  }
  return *selector >= 0x60 && *selector < 0x80 && (*selector & 4) == 0;
}

}  // namespace

uint64_t segment_base(const Case& one, ZydisRegister segment) {
  if (one.mode == Mode::k32) return 0;
  return segment == ZYDIS_REGISTER_FS ? kFsBase : segment == ZYDIS_REGISTER_GS ? kGsBase : 0;
}

uint64_t effective_address(const Case& one, const Decoded& in, const ZydisDecodedOperand& operand) {
  const auto& memory = operand.mem;
  uint64_t offset = memory.disp.has_displacement ? static_cast<uint64_t>(memory.disp.value) : 0;
  if (memory.base == ZYDIS_REGISTER_RIP || memory.base == ZYDIS_REGISTER_EIP)
    offset += one.state.rip + one.length;
  else if (memory.base != ZYDIS_REGISTER_NONE)
    offset += one.state.gpr[static_cast<size_t>(ZydisRegisterGetId(memory.base))];
  if (memory.index != ZYDIS_REGISTER_NONE)
    offset += one.state.gpr[static_cast<size_t>(ZydisRegisterGetId(memory.index))] * memory.scale;
  if (in.info.address_width == 32) offset = static_cast<uint32_t>(offset);
  if (in.info.address_width == 16) offset = static_cast<uint16_t>(offset);
  return offset + segment_base(one, memory.segment);
}

void favour_registers(Case& one, const Decoded& in, Values& values) {
  CpuState& s = one.state;
  if (in.info.mnemonic == ZYDIS_MNEMONIC_DIV || in.info.mnemonic == ZYDIS_MNEMONIC_IDIV)
    favour_division(one, in, values);
  if (in.info.meta.category == ZYDIS_CATEGORY_STRINGOP || in.info.meta.category == ZYDIS_CATEGORY_IOSTRINGOP)
    favour_string(one, in, values);
  if (is_near_branch(in)) {
    aim_branch(one, in, values);
    if (const int reg = whole_register(in.operands[0]); reg >= 0)
      s.gpr[static_cast<size_t>(reg)] = code_target(values);
  }
  if (pops_flags(in)) s.gpr[kRsp] = kData + 64 + values.below(static_cast<unsigned>(kWritable) - 256);
  if (takes_selector(in))
    for (unsigned i = 0; i < in.info.operand_count_visible; ++i)
      if (const int reg = whole_register(in.operands[i]); reg >= 0)
        s.gpr[static_cast<size_t>(reg)] = values.selector();
  if (in.info.mnemonic == ZYDIS_MNEMONIC_CMPXCHG && values.chance(50))
    if (const int reg = whole_register(in.operands[0]); reg >= 0)
      s.gpr[kRax] = s.gpr[static_cast<size_t>(reg)];
  if (in.info.meta.category == ZYDIS_CATEGORY_BITBYTE && in.info.operand_count_visible == 2 &&
      values.chance(60))
    if (const int reg = whole_register(in.operands[1]); reg >= 0)
      s.gpr[static_cast<size_t>(reg)] = uint64_t{values.below(4000)} - 2000;
}

void favour_memory(Case& one, const Decoded& in, Values& values) {
  CpuState& s = one.state;
  const ZydisDecodedOperand* memory = memory_of(in);
  if (in.info.meta.category == ZYDIS_CATEGORY_STRINGOP && values.chance(15))
    s.gpr[kRdi] = s.gpr[kRsi] + values.below(40) - 20;
  if (in.info.mnemonic == ZYDIS_MNEMONIC_LEAVE && values.chance(70)) s.gpr[kRbp] = values.address(8, true);
  if (pops_flags(in)) {
    if (in.info.meta.category == ZYDIS_CATEGORY_RET) return put_return_frame(one, in, values);
    const uint64_t flags = (values.any() & ~(flag::kTrap | flag::kAlignment));
    return put(one, s.gpr[kRsp], &flags, 8);
  }
  if (in.info.meta.category == ZYDIS_CATEGORY_RET) {
    const unsigned width = one.mode == Mode::k64 && !is_far(in) ? 8 : in.info.operand_width / 8u;
    uint64_t frame[2] = {code_target(values), 0};
    if (is_far(in)) return put_return_frame(one, in, values);
    return put(one, s.gpr[kRsp], frame, width);
  }
  if (in.info.mnemonic == ZYDIS_MNEMONIC_POP && takes_selector(in)) {
    const uint64_t selector = values.selector();
    return put(one, s.gpr[kRsp], &selector, 8);
  }
  if (memory == nullptr) return;
  const uint64_t address = effective_address(one, in, *memory);
  if (loads_far_pointer(in)) {
    uint8_t bytes[10];
    const uint64_t offset = is_far(in) ? code_target(values) : values.integer(), selector = values.selector();
    const unsigned width = std::max(memory->size / 8u, 4u) - 2;
    std::memcpy(bytes, &offset, 8);
    std::memcpy(bytes + std::min(width, 8u), &selector, 2);
    return put(one, address, bytes, std::min(width + 2, 10u));
  }
  if (is_near_branch(in)) {
    const uint64_t target = code_target(values);
    return put(one, address, &target, memory->size / 8u);
  }
  if (takes_selector(in)) {
    const uint64_t selector = values.selector();
    return put(one, address, &selector, 2);
  }
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
      return put_float_image(one, address, values);
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
      return put_environment(one, address, in.info.operand_width == 16 ? 2 : 4, values);
    case ZYDIS_MNEMONIC_LDMXCSR: {
      const uint32_t value = static_cast<uint32_t>(values.chance(90) ? values.any() & 0xffff : values.any());
      return put(one, address, &value, 4);
    }
    case ZYDIS_MNEMONIC_CMPXCHG:
      if (values.chance(50)) return put(one, address, &s.gpr[kRax], memory->size / 8u);
      break;
    case ZYDIS_MNEMONIC_CMPXCHG8B:
      if (values.chance(50)) {
        const uint64_t value = static_cast<uint32_t>(s.gpr[kRax]) | s.gpr[kRdx] << 32;
        return put(one, address, &value, 8);
      }
      break;
    default:
      break;
  }
  if (values.chance(70)) put_operand(one, *memory, address, values);
}

bool harmless(const Case& one, const Decoded& in) {
  if (meets_host_descriptor(one, in)) return false;
  if (in.locks())
    for (unsigned i = 0; i < in.info.operand_count_visible; ++i) {
      const ZydisDecodedOperand& operand = in.operands[i];
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
      const uint64_t address = effective_address(one, in, operand);
      if ((address & 63) + operand.size / 8 > 64) return false;
    }
  return true;
}

bool surely_invalid(Mode, std::span<const uint8_t> bytes) {
  // New instructions are added in VEX, EVEX and XOP encodings and in the three-byte maps.
  for (size_t i = 0; i < bytes.size() && i < 8; ++i) {
    const uint8_t byte = bytes[i];
    if (byte == 0xc4 || byte == 0xc5 || byte == 0x62 || byte == 0x8f || byte == 0xd5) return false;
    if (byte == 0x0f)
      return i + 1 < bytes.size() && bytes[i + 1] != 0x38 && bytes[i + 1] != 0x3a && bytes[i + 1] != 0x01 &&
             bytes[i + 1] != 0x0f && bytes[i + 1] != 0xc7 && bytes[i + 1] != 0xae && bytes[i + 1] != 0x05 &&
             bytes[i + 1] != 0x34;
  }
  return true;
}

}  // namespace slalom::vm::diff
