#include "forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace slalom::vm::diff {
namespace {

const ZydisDecoder& decoder(Mode mode) {
  static const std::array<ZydisDecoder, 2> decoders = [] {
    std::array<ZydisDecoder, 2> all;
    ZydisDecoderInit(&all[0], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&all[1], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
    for (ZydisDecoder& one : all)
      for (ZydisDecoderMode mode :
           {ZYDIS_DECODER_MODE_CET, ZYDIS_DECODER_MODE_MPX, ZYDIS_DECODER_MODE_TZCNT,
            ZYDIS_DECODER_MODE_LZCNT, ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_CLDEMOTE})
        ZydisDecoderEnableMode(&one, mode, ZYAN_FALSE);
    return all;
  }();
  return decoders[mode == Mode::k64 ? 0 : 1];
}

// The ISA sets that CPUID advertises (vm/cpu/control.cc).
bool promised(const Decoded& in) {
  if (in.info.mnemonic == ZYDIS_MNEMONIC_SYSENTER || in.info.mnemonic == ZYDIS_MNEMONIC_SYSEXIT) return false;
  switch (in.info.meta.isa_set) {
    case ZYDIS_ISA_SET_LAHF:  // a separate feature in 64-bit code
      return in.info.machine_mode != ZYDIS_MACHINE_MODE_LONG_64;
    case ZYDIS_ISA_SET_AMD:
      return in.info.mnemonic == ZYDIS_MNEMONIC_SYSCALL || in.info.mnemonic == ZYDIS_MNEMONIC_SYSRET;
    case ZYDIS_ISA_SET_I86:
    case ZYDIS_ISA_SET_I186:
    case ZYDIS_ISA_SET_I286PROTECTED:
    case ZYDIS_ISA_SET_I286REAL:
    case ZYDIS_ISA_SET_I386:
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_PENTIUMMMX:
    case ZYDIS_ISA_SET_PAUSE:
    case ZYDIS_ISA_SET_RDPMC:
    case ZYDIS_ISA_SET_PPRO:
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_FCMOV:
    case ZYDIS_ISA_SET_X87:
    case ZYDIS_ISA_SET_FXSAVE:
    case ZYDIS_ISA_SET_FXSAVE64:
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSEMXCSR:
    case ZYDIS_ISA_SET_SSE2:
    case ZYDIS_ISA_SET_SSE2MMX:
    case ZYDIS_ISA_SET_LONGMODE:
    case ZYDIS_ISA_SET_FAT_NOP:
    case ZYDIS_ISA_SET_PREFETCH_NOP:
    case ZYDIS_ISA_SET_SSE_PREFETCH:
      return true;
    default:
      return false;
  }
}

std::string kind_of(const ZydisDecodedOperand& operand) {
  switch (operand.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
      switch (ZydisRegisterGetClass(operand.reg.value)) {
        case ZYDIS_REGCLASS_GPR8:
          return "r8";
        case ZYDIS_REGCLASS_GPR16:
          return "r16";
        case ZYDIS_REGCLASS_GPR32:
          return "r32";
        case ZYDIS_REGCLASS_GPR64:
          return "r64";
        case ZYDIS_REGCLASS_XMM:
          return "xmm";
        case ZYDIS_REGCLASS_MMX:
          return "mm";
        case ZYDIS_REGCLASS_X87:
          return "st";
        case ZYDIS_REGCLASS_SEGMENT:
          return "sreg";
        default:
          return ZydisRegisterGetString(operand.reg.value);
      }
    case ZYDIS_OPERAND_TYPE_MEMORY:
      if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return "m";  // LEA: its size is the address size
      return fmt::format("m{}", operand.size);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      return "imm";
    case ZYDIS_OPERAND_TYPE_POINTER:
      return "ptr";
    default:
      return "?";
  }
}

bool is_prefix(Mode mode, uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return mode == Mode::k64 && (byte & 0xf0) == 0x40;
  }
}

std::vector<uint8_t> start_of(const Form& form) {
  std::vector<uint8_t> bytes;
  if (form.segment != 0) bytes.push_back(form.segment);
  if (form.lock) bytes.push_back(0xf0);
  if (form.operand_size) bytes.push_back(0x66);
  if (form.repeat != 0) bytes.push_back(form.repeat);
  if (form.wide) bytes.push_back(0x48);
  if (form.two_byte) bytes.push_back(0x0f);
  bytes.push_back(form.opcode);
  return bytes;
}

bool uses_reg_field(const Decoded& in) {
  for (unsigned i = 0; i < in.info.operand_count; ++i)
    if (in.operands[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_REG) return true;
  return false;
}
bool uses_rm_field(const Decoded& in) {
  for (unsigned i = 0; i < in.info.operand_count; ++i)
    if (in.operands[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM) return true;
  return false;
}

std::string opcode_text(const Decoded& in) {
  std::string text = in.info.opcode_map == ZYDIS_OPCODE_MAP_0F ? "0f" : "";
  text += fmt::format("{:02x}", in.info.opcode);
  if (!(in.info.attributes & ZYDIS_ATTRIB_HAS_MODRM) || uses_reg_field(in)) return text;
  if (in.info.meta.category == ZYDIS_CATEGORY_SETCC) return text;  // any digit is valid
  const auto& modrm = in.info.raw.modrm;
  text += fmt::format("/{}", modrm.reg);
  if (modrm.mod == 3 && !uses_rm_field(in)) text += fmt::format("({:02x})", 0xc0 | modrm.reg << 3 | modrm.rm);
  return text;
}

std::string operand_text(const Decoded& in) {
  std::string text;
  for (unsigned i = 0; i < in.info.operand_count_visible; ++i)
    text += (i > 0 ? "," : "") + kind_of(in.operands[i]);
  if (!text.empty()) text += ' ';
  return text + ZydisMnemonicGetString(in.info.mnemonic);
}

std::string segment_text(uint8_t prefix) {
  return prefix == 0 ? "" : prefix == 0x64 ? "fs: " : "gs: ";
}

std::string form_name(const Form& form, const Decoded& in);

// Adds the form of these bytes, unless it equals a form with fewer prefixes.
void consider(Form form, std::vector<uint8_t> bytes, std::set<std::string>& seen, std::vector<Form>& out) {
  bytes.resize(15, 0);
  const auto in = decode(form.mode, bytes);
  if (!in || comparable(*in) == Comparable::NotPromised) return;
  form.has_modrm = (in->info.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
  if (form.has_modrm) {
    form.memory = in->has_memory();
    if (!uses_reg_field(*in) && in->info.meta.category != ZYDIS_CATEGORY_SETCC)
      form.digit = in->info.raw.modrm.reg;
    if (in->info.raw.modrm.mod == 3 && !uses_rm_field(*in)) form.rm = in->info.raw.modrm.rm;
  }
  form.code = opcode_text(*in);
  form.signature = signature(*in);
  form.mnemonic = in->info.mnemonic;
  // For some forms only one operand is excluded.
  form.excluded = form.mnemonic == ZYDIS_MNEMONIC_INT ? "" : why_not(*in);
  form.name = form_name(form, *in);
  if (seen.insert((form.mode == Mode::k64 ? "64" : "32") + form.signature).second) out.push_back(form);
}

void probe(const Form& form, std::set<std::string>& seen, std::vector<Form>& out) {
  std::vector<uint8_t> bytes = start_of(form);
  bytes.push_back(0);
  for (unsigned value = 0; value < 256; ++value) {
    // Try all digits with memory and all combinations of registers: some x87 opcodes are such combinations.
    if (value >= 0x40 && value < 0xc0) continue;
    if (value < 0x40 && (value & 7) != 3) continue;
    bytes.back() = static_cast<uint8_t>(value);
    consider(form, bytes, seen, out);
  }
}

std::string form_name(const Form& form, const Decoded& in) {
  return fmt::format("{} {}{}{}{}{}{} {}", form.mode == Mode::k64 ? "64" : "32", segment_text(form.segment),
                     form.lock ? "lock " : "",
                     form.repeat == 0      ? ""
                     : form.repeat == 0xf2 ? "f2 "
                                           : "f3 ",
                     form.operand_size ? "66 " : "", form.wide ? "W " : "", opcode_text(in),
                     operand_text(in));
}

}  // namespace

bool Decoded::has_memory() const {
  for (unsigned i = 0; i < info.operand_count_visible; ++i)
    if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) return true;
  return false;
}

bool Decoded::locks() const {
  return (info.attributes & ZYDIS_ATTRIB_HAS_LOCK) || (info.mnemonic == ZYDIS_MNEMONIC_XCHG && has_memory());
}

std::optional<Decoded> decode(Mode mode, std::span<const uint8_t> bytes) {
  Decoded in;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(mode), bytes.data(), std::min<size_t>(bytes.size(), 15),
                                           &in.info, in.operands)))
    return std::nullopt;
  return in;
}

std::string disassemble(Mode mode, std::span<const uint8_t> bytes, uint64_t address) {
  const auto in = decode(mode, bytes);
  if (!in) return "(invalid)";
  char text[96];
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &in->info, in->operands,
                                                    in->info.operand_count_visible, text, sizeof text,
                                                    address, nullptr)))
    return "(cannot be printed)";
  return text;
}

std::string why_not(const Decoded& in) {
  if (in.info.meta.isa_set == ZYDIS_ISA_SET_AMD) return "Intel's CPUs have it in 64-bit code only";
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
      return "it calls the host's kernel";
    case ZYDIS_MNEMONIC_INT:
      return in.operands[0].imm.value.u == 0x80 ? "it calls the host's kernel" : "";
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDPMC:
      return "it asks about the host itself";
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
      for (unsigned i = 0; i < in.info.raw.prefix_count; ++i)
        if (in.info.raw.prefixes[i].value == 0xf3) return "with f3, a newer CPU counts zeros";
      return "";
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
      return "it shows the host's tables, or is forbidden (UMIP)";
    default:
      return "";
  }
}

Comparable comparable(const Decoded& in) {
  if (!promised(in)) return Comparable::NotPromised;
  return why_not(in).empty() ? Comparable::Yes : Comparable::No;
}

std::string signature(const Decoded& in) {
  constexpr uint64_t repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  return fmt::format("{}{}{} {}", (in.info.attributes & ZYDIS_ATTRIB_HAS_LOCK) ? "lock " : "",
                     (in.info.attributes & repeats) ? "repeated " : "", opcode_text(in), operand_text(in));
}

std::vector<Form> all_forms() {
  std::vector<Form> out;
  std::set<std::string> seen;
  struct Prefixes {
    bool lock, operand_size;
    uint8_t repeat;
    bool wide;
  };
  // Fewest prefixes first.
  std::vector<Prefixes> prefixes;
  for (const bool lock : {false, true})
    for (const uint8_t repeat : {0, 0xf3, 0xf2})
      for (const bool operand_size : {false, true})
        for (const bool wide : {false, true}) prefixes.push_back({lock, operand_size, repeat, wide});
  for (const Mode mode : {Mode::k64, Mode::k32})
    for (const bool two_byte : {false, true})
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        if (!two_byte && (is_prefix(mode, static_cast<uint8_t>(opcode)) || opcode == 0x0f)) continue;
        for (const Prefixes& p : prefixes) {
          if (p.wide && mode == Mode::k32) continue;
          probe({.name = {},
                 .code = {},
                 .signature = {},
                 .mode = mode,
                 .lock = p.lock,
                 .operand_size = p.operand_size,
                 .repeat = p.repeat,
                 .wide = p.wide,
                 .two_byte = two_byte,
                 .opcode = static_cast<uint8_t>(opcode),
                 .excluded = {}},
                seen, out);
        }
      }
  return out;
}

}  // namespace slalom::vm::diff
