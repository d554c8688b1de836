#include "vm/gdb/register_map.h"

#include <algorithm>

namespace slalom::vm {
namespace {

// Flags that a debugger may set without creating an impossible state.
constexpr uint64_t kSettableFlags = flag::kArithmetic | flag::kTrap | flag::kInterrupt | flag::kDirection |
                                    flag::kIopl | flag::kNested | flag::kResume | flag::kAlignment |
                                    flag::kId;

std::vector<uint8_t> little_endian(uint64_t value, unsigned bytes) {
  std::vector<uint8_t> out;
  for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  return out;
}

uint64_t number_of(std::span<const uint8_t> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size() && i < 8; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

bool canonical(uint64_t address) {
  const uint64_t top = address >> 47;
  return top == 0 || top == 0x1ffff;
}

X87Register& stack_register(Fpu& fpu, unsigned index) {
  return fpu.registers[((fpu.status >> 11) + index) & 7];
}

// Two bits for each physical register: valid, zero, special or empty.
uint64_t full_tags(const Fpu& fpu) {
  uint64_t tags = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const X87Register& r = fpu.registers[i];
    const unsigned exponent = r.sign_exponent & 0x7fff;
    uint64_t tag = 0;
    if (!(fpu.valid >> i & 1))
      tag = 3;
    else if (exponent == 0 && r.significand == 0)
      tag = 1;
    else if (exponent == 0 || exponent == 0x7fff || !(r.significand >> 63))
      tag = 2;
    tags |= tag << (2 * i);
  }
  return tags;
}

uint64_t x87_control(const Fpu& fpu, unsigned index) {
  const uint64_t words[] = {fpu.control,     fpu.status,        full_tags(fpu), fpu.instruction >> 32,
                            fpu.instruction, fpu.operand >> 32, fpu.operand,    fpu.opcode};
  return words[index];
}

uint64_t control_register(Pc& pc, unsigned cpu, unsigned index) {
  const Registers& r = pc.cpu(cpu).regs;
  switch (index) {
    case 0:
      return r.cr0;
    case 2:
      return r.cr2;
    case 3:
      return r.cr3;
    case 4:
      return r.cr4;
    default:  // CR8, the task priority
      return pc.devices().state().interrupts.local[cpu].task_priority >> 4;
  }
}

}  // namespace

RegisterMap::RegisterMap() {
  xml_ =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target>\n"
      "<architecture>i386:x86-64</architecture>\n";
  begin_feature("org.gnu.gdb.i386.core");
  xml_ += "<flags id=\"eflags\" size=\"4\">";
  constexpr std::pair<const char*, unsigned> kFlags[] = {
      {"CF", 0},  {"", 1},    {"PF", 2},   {"AF", 4},   {"ZF", 6},  {"SF", 7},
      {"TF", 8},  {"IF", 9},  {"DF", 10},  {"OF", 11},  {"NT", 14}, {"RF", 16},
      {"VM", 17}, {"AC", 18}, {"VIF", 19}, {"VIP", 20}, {"ID", 21}};
  for (const auto& [name, bit] : kFlags)
    xml_ += fmt::format("<field name=\"{}\" start=\"{}\" end=\"{}\"/>", name, bit, bit);
  xml_ += "</flags>\n";
  constexpr std::pair<const char*, unsigned> kGeneral[] = {{"rax", kRax}, {"rbx", kRbx}, {"rcx", kRcx},
                                                           {"rdx", kRdx}, {"rsi", kRsi}, {"rdi", kRdi},
                                                           {"rbp", kRbp}, {"rsp", kRsp}};
  for (const auto& [name, index] : kGeneral)
    add(Kind::General, index, 8, name, index == kRsp || index == kRbp ? "data_ptr" : "int64");
  for (unsigned i = 8; i < 16; ++i) add(Kind::General, i, 8, fmt::format("r{}", i), "int64");
  add(Kind::General, kRip, 8, "rip", "code_ptr");
  add(Kind::Flags, 0, 4, "eflags", "eflags");
  constexpr std::pair<const char*, unsigned> kSelectors[] = {{"cs", kCs}, {"ss", kSs}, {"ds", kDs},
                                                             {"es", kEs}, {"fs", kFs}, {"gs", kGs}};
  for (const auto& [name, index] : kSelectors) add(Kind::Selector, index, 4, name, "int32");
  for (unsigned i = 0; i < 8; ++i) add(Kind::Stack, i, 10, fmt::format("st{}", i), "i387_ext");
  constexpr const char* kX87[] = {"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"};
  for (unsigned i = 0; i < std::size(kX87); ++i) add(Kind::X87Control, i, 4, kX87[i], "int");
  end_feature();

  begin_feature("org.gnu.gdb.i386.sse");
  xml_ +=
      "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/><vector id=\"v2d\" type=\"ieee_double\" "
      "count=\"2\"/>"
      "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/><vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
      "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/><vector id=\"v2i64\" type=\"int64\" count=\"2\"/>\n"
      "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/><field name=\"v2_double\" type=\"v2d\"/>"
      "<field name=\"v16_int8\" type=\"v16i8\"/><field name=\"v8_int16\" type=\"v8i16\"/>"
      "<field name=\"v4_int32\" type=\"v4i32\"/><field name=\"v2_int64\" type=\"v2i64\"/>"
      "<field name=\"uint128\" type=\"uint128\"/></union>\n";
  for (unsigned i = 0; i < 16; ++i) add(Kind::Vector, i, 16, fmt::format("xmm{}", i), "vec128");
  add(Kind::Mxcsr, 0, 4, "mxcsr", "int");
  end_feature();

  begin_feature("org.gnu.gdb.i386.segments");
  add(Kind::SegmentBase, kFs, 8, "fs_base", "int64");
  add(Kind::SegmentBase, kGs, 8, "gs_base", "int64");
  end_feature();

  begin_feature("org.slalom.i386.system");
  add(Kind::KernelGsBase, 0, 8, "k_gs_base", "int64");
  for (const unsigned number : {0u, 2u, 3u, 4u, 8u})
    add(Kind::Control, number, 8, fmt::format("cr{}", number), "int64");
  add(Kind::Efer, 0, 8, "efer", "int64");
  end_feature();
  xml_ += "</target>\n";
}

void RegisterMap::begin_feature(const std::string& name) {
  xml_ += fmt::format("<feature name=\"{}\">\n", name);
}
void RegisterMap::end_feature() {
  xml_ += "</feature>\n";
}

void RegisterMap::add(Kind kind, unsigned index, unsigned bytes, const std::string& name,
                      const std::string& type) {
  xml_ += fmt::format("<reg name=\"{}\" bitsize=\"{}\" type=\"{}\" regnum=\"{}\"/>\n", name, bytes * 8, type,
                      registers_.size());
  registers_.push_back({.kind = kind, .index = index, .bytes = bytes});
}

std::vector<uint8_t> RegisterMap::read(Pc& pc, unsigned cpu_id, unsigned number) const {
  const Register& one = registers_[number];
  Cpu& cpu = pc.cpu(cpu_id);
  Registers& r = cpu.regs;
  const auto whole = [&](uint64_t value) { return little_endian(value, one.bytes); };
  switch (one.kind) {
    case Kind::General:
      return whole(r.gpr[one.index]);
    case Kind::Flags:
      return whole(cpu.rflags());
    case Kind::Selector:
      return whole(r.segments[one.index].selector);
    case Kind::Stack: {
      const X87Register& st = stack_register(r.fpu, one.index);
      std::vector<uint8_t> bytes = little_endian(st.significand, 8);
      for (const uint8_t byte : little_endian(st.sign_exponent, 2)) bytes.push_back(byte);
      return bytes;
    }
    case Kind::X87Control:
      return whole(x87_control(r.fpu, one.index));
    case Kind::Vector: {
      std::vector<uint8_t> bytes = little_endian(r.xmm[one.index].low, 8);
      for (const uint8_t byte : little_endian(r.xmm[one.index].high, 8)) bytes.push_back(byte);
      return bytes;
    }
    case Kind::Mxcsr:
      return whole(r.mxcsr);
    case Kind::SegmentBase:
      return whole(r.segments[one.index].base);
    case Kind::KernelGsBase:
      return whole(r.kernel_gs_base);
    case Kind::Control:
      return whole(control_register(pc, cpu_id, one.index));
    case Kind::Efer:
      return whole(r.efer);
  }
  return {};
}

RegisterMap::WriteResult RegisterMap::write(Pc& pc, unsigned cpu_id, unsigned number,
                                            std::span<const uint8_t> value) const {
  const Register& one = registers_[number];
  if (value.size() != one.bytes) return WriteResult::Refused;
  if (std::ranges::equal(value, read(pc, cpu_id, number))) return WriteResult::Same;
  Cpu& cpu = pc.cpu(cpu_id);
  Registers& r = cpu.regs;
  const uint64_t low = number_of(value);
  switch (one.kind) {
    case Kind::General:
      if (one.index == kRip) {
        if (cpu.mode.is_long() ? !canonical(low) : low > 0xffffffff) return WriteResult::Refused;
        cpu.moved();
      }
      r.gpr[one.index] = low;
      break;
    case Kind::Flags:
      cpu.set_rflags((cpu.rflags() & ~kSettableFlags) | (low & kSettableFlags));
      break;
    case Kind::Stack:
      stack_register(r.fpu, one.index) = {
          .significand = low, .sign_exponent = static_cast<uint16_t>(number_of(value.subspan(8)))};
      break;
    case Kind::Vector:
      r.xmm[one.index] = {.low = low, .high = number_of(value.subspan(8))};
      break;
    case Kind::Mxcsr:
      if (low > 0xffff) return WriteResult::Refused;
      r.mxcsr = static_cast<uint32_t>(low);
      break;
    case Kind::SegmentBase:
      if (!canonical(low)) return WriteResult::Refused;
      r.segments[one.index].base = low;
      cpu.registers_changed();
      break;
    case Kind::KernelGsBase:
      if (!canonical(low)) return WriteResult::Refused;
      r.kernel_gs_base = low;
      break;
    case Kind::Selector:
    case Kind::X87Control:
    case Kind::Control:
    case Kind::Efer:
      return WriteResult::Refused;
  }
  return WriteResult::Changed;
}

}  // namespace slalom::vm
