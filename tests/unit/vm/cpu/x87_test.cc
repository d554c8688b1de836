// x87 compared with the host CPU: every opcode from D8 to DF, with edge values, empty registers, unmasked and
// pending exceptions.
#include <gtest/gtest.h>

#include <set>

#include "unit/vm/cpu/host_cpu.h"
#include "unit/vm/cpu/values.h"

namespace slalom::vm {
namespace {

std::vector<Form> all_forms() {
  std::vector<Form> forms(1);
  ZydisISASet set;
  EXPECT_TRUE(make_form(std::vector<uint8_t>{0x9b}, forms[0], set));
  for (unsigned opcode = 0xd8; opcode <= 0xdf; ++opcode)
    for (unsigned modrm = 0; modrm < 256; ++modrm) {
      if (modrm < 0xc0 && (modrm & 0xc7) != 7) continue;  // [rdi]
      const uint8_t bytes[] = {0x66, static_cast<uint8_t>(opcode), static_cast<uint8_t>(modrm)};
      Form form;
      if (!make_form(std::span(bytes).subspan(1), form, set)) continue;
      if (form.mnemonic == ZYDIS_MNEMONIC_FISTTP) continue;  // SSE3
      forms.push_back(form);
      if (modrm < 0xc0 && make_form(bytes, form, set)) forms.push_back(form);
    }
  return forms;
}

bool is_transcendental(const Form& form) {
  static const std::set<ZydisMnemonic> names = {
      ZYDIS_MNEMONIC_F2XM1,   ZYDIS_MNEMONIC_FYL2X, ZYDIS_MNEMONIC_FPTAN,   ZYDIS_MNEMONIC_FPATAN,
      ZYDIS_MNEMONIC_FYL2XP1, ZYDIS_MNEMONIC_FSIN,  ZYDIS_MNEMONIC_FSINCOS, ZYDIS_MNEMONIC_FCOS};
  return names.contains(form.mnemonic);
}

CpuCase make_case(Values& values, bool unmasked) {
  CpuCase start;
  for (unsigned i = 0; i < 3; ++i) start.gpr[i] = values.integer();
  start.rflags = values.flags();
  start.fx = values.x87(unmasked);
  if (values.below(8) == 0) start.offset = static_cast<unsigned>(values.below(16));
  // Enough for FRSTOR. The first bytes are the operand.
  for (uint8_t& byte : start.memory) byte = static_cast<uint8_t>(values.random());
  start.set_operand(values.below(2) != 0 ? values.vector() : values.extended());
  return start;
}

// A digit above nine is undefined.
bool has_odd_digits(const Form& form, const CpuCase& start) {
  if (form.mnemonic != ZYDIS_MNEMONIC_FBLD) return false;
  const uint8_t* bytes = start.memory.data() + start.memory.size() / 2 + start.offset;
  for (unsigned i = 0; i < 9; ++i)
    if ((bytes[i] & 15) > 9 || bytes[i] >> 4 > 9) return true;
  return false;
}

std::string describe(const CpuCase& start) {
  std::string out;
  char text[128];
  std::snprintf(text, sizeof text, ", control %x, status %x, valid %x", start.fx.control, start.fx.status,
                start.fx.valid);
  out += text;
  for (unsigned i = 0; i < 2; ++i) {
    std::snprintf(text, sizeof text, ", st%u %llx:%llx", i,
                  static_cast<unsigned long long>(start.fx.st[i].high),
                  static_cast<unsigned long long>(start.fx.st[i].low));
    out += text;
  }
  return out;
}

void compare_all_x87(bool unmasked) {
  HostCpu host;
  unsigned forms = 0;
  for (const Form& form : all_forms()) {
    if (is_transcendental(form)) continue;
    Values values(++forms);
    for (unsigned i = 0; i < 200; ++i) {
      CpuCase start = make_case(values, unmasked);
      if (has_odd_digits(form, start)) {
        for (unsigned k = 0; k < 10; ++k)
          start.memory[start.memory.size() / 2 + start.offset + k] =
              static_cast<uint8_t>(values.below(10) << 4 | values.below(10));
      }
      const CpuResult handler = host.run_handler(form.bytes, start);
      ASSERT_TRUE(handler.known) << form.name;
      ASSERT_EQ(difference(host.run_on_host(form.bytes, start), handler), "")
          << form.name << ", case " << i << describe(start);
    }
  }
  EXPECT_GT(forms, 440u);
}

TEST(X87, AllFormsAgreeWithTheHost) {
  compare_all_x87(false);
}
TEST(X87, AllFormsAgreeWithTheHostWhenExceptionsAreUnmasked) {
  compare_all_x87(true);
}

// Host and handler may round differently. Makes their results equal if they are neighbours.
void forgive_last_bit(const CpuResult& host, CpuResult& handler) {
  uint16_t forgiven = 0x200;  // C1: the direction of rounding
  const auto place = [](const FxImage::Slot& r) {
    return static_cast<__int128>(r.high & 0x7fff) << 63 | static_cast<__int128>(r.low & ~(uint64_t{1} << 63));
  };
  for (unsigned i = 0; i < 8; ++i) {
    const FxImage::Slot& a = host.state.fx.st[i];
    FxImage::Slot& b = handler.state.fx.st[i];
    const __int128 distance = place(a) - place(b);
    if ((a.high ^ b.high) >> 15 != 0 || (a.high & 0x7fff) == 0x7fff || (distance != 1 && distance != -1))
      continue;
    b = a;
    forgiven |= 0x10;  // just below the smallest normal number, or just not
  }
  uint16_t& status = handler.state.fx.status;
  status = static_cast<uint16_t>((status & ~forgiven) | (host.state.fx.status & forgiven));
}

// Whether a function of the smallest normal number underflows depends on its last bit. If the exception is
// unmasked, the whole result differs.
bool is_borderline(const CpuCase& start) {
  const FxImage::Slot& x = start.fx.st[0];
  return (x.high & 0x7fff) <= 1 && x.low == uint64_t{1} << 63;
}

TEST(X87, TranscendentalsAgreeWithTheHostButForTheLastBit) {
  HostCpu host;
  unsigned forms = 0;
  for (const Form& form : all_forms()) {
    if (!is_transcendental(form)) continue;
    Values values(++forms);
    for (unsigned i = 0; i < 3000; ++i) {
      const bool unmasked = i % 2 != 0;
      const CpuCase start = make_case(values, unmasked);
      if (unmasked && is_borderline(start)) continue;
      CpuResult handler = host.run_handler(form.bytes, start);
      ASSERT_TRUE(handler.known) << form.name;
      const CpuResult native = host.run_on_host(form.bytes, start);
      forgive_last_bit(native, handler);
      ASSERT_EQ(difference(native, handler), "") << form.name << ", case " << i << describe(start);
    }
  }
  EXPECT_EQ(forms, 8u);
}

TEST(X87, AFaultLeavesEverythingAsItWas) {
  HostCpu host;
  for (const Form& form : all_forms()) {
    Values values(2);
    EXPECT_EQ(trouble_with_missing_page(host, form.bytes, make_case(values, false)), "") << form.name;
  }
}

TEST(X87, NeedsTheUnit) {
  HostCpu host;
  const std::vector<uint8_t> fld1 = {0xd9, 0xe8}, fninit = {0xdb, 0xe3}, fwait = {0x9b};
  for (const uint64_t bit : {cr0::kTs, cr0::kEm}) {
    CpuCase start;
    start.cr0 |= bit;
    EXPECT_EQ(host.run_handler(fld1, start).fault, kNoDevice);
    EXPECT_EQ(host.run_handler(fninit, start).fault, kNoDevice);
    EXPECT_EQ(host.run_handler(fwait, start).fault, bit == cr0::kTs ? int{kNoDevice} : -1);
    start.cr0 &= ~cr0::kMp;
    EXPECT_EQ(host.run_handler(fwait, start).fault, -1);
  }
}

// The next waiting instruction reports an exception, whatever CR0.NE says.
TEST(X87, APendingExceptionWaits) {
  HostCpu host;
  CpuCase start;
  start.fx.control = 0x37b;  // division by zero is unmasked
  start.fx.status = 0x8084;
  const std::vector<uint8_t> fld1 = {0xd9, 0xe8}, fnstsw = {0xdf, 0xe0}, fnclex = {0xdb, 0xe2};
  EXPECT_EQ(host.run_handler(fld1, start).fault, kX87);
  EXPECT_EQ(host.run_handler(fnstsw, start).state.gpr[kRax], 0x8084u);
  EXPECT_EQ(host.run_handler(fnclex, start).state.fx.status, 0);
  start.cr0 &= ~cr0::kNe;
  EXPECT_EQ(host.run_handler(fld1, start).fault, kX87);
}

// Real mode stores addresses differently: 20 bits in the 16-bit form, all bits in the 32-bit form. So does
// virtual 8086 mode, which is easier to enter here.
TEST(X87, TheEnvironmentOfRealMode) {
  HostCpu host;
  CpuCase start;
  start.rflags |= flag::kVm86;
  start.fx.control = 0x37f;
  start.fx.status = 0x3000;
  start.fx.valid = 0x40;
  start.fx.st[0] = {uint64_t{1} << 63, 0x3fff};
  start.fx.opcode = 0x123;
  start.fx.instruction = 0x89abc;
  start.fx.operand = 0x54321;
  const auto stored = [&](const std::vector<uint8_t>& bytes, size_t fields, size_t size) {
    const CpuResult result = host.run_handler(bytes, start);
    std::vector<uint32_t> out(fields);
    for (size_t i = 0; i < fields; ++i)
      std::memcpy(&out[i], result.state.memory.data() + result.state.memory.size() / 2 + i * size, size);
    return out;
  };
  EXPECT_EQ(stored({0x66, 0xd9, 0x37}, 7, 2),
            (std::vector<uint32_t>{0x37f, 0x3000, 0xcfff, 0x9abc, 0x8123, 0x4321, 0x5000}));
  EXPECT_EQ(stored({0xd9, 0x37}, 7, 4), (std::vector<uint32_t>{0xffff037f, 0xffff3000, 0xffffcfff, 0xffff9abc,
                                                               0x8123, 0xffff4321, 0x5000}));
  // And back.
  std::array<uint16_t, 7> narrow = {0x37f, 0x3000, 0xcfff, 0x9abc, 0x8123, 0x4321, 0x5000};
  start.set_operand(narrow);
  start.fx = FxImage{};
  const FxImage loaded = host.run_handler(std::vector<uint8_t>{0x66, 0xd9, 0x27}, start).state.fx;
  EXPECT_EQ(loaded.instruction, 0x89abcu);
  EXPECT_EQ(loaded.operand, 0x54321u);
  EXPECT_EQ(loaded.opcode, 0x123);
  EXPECT_EQ(loaded.valid, 0x40);
}

}  // namespace
}  // namespace slalom::vm
