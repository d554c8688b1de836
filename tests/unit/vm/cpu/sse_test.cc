// SSE and SSE2 compared with the host CPU, and with the manual if results are vendor-specific.
#include <emmintrin.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "unit/vm/cpu/vector_forms.h"

namespace slalom::vm {
namespace {

// Instructions that every vendor approximates with its own table: see SseApproximate.
bool is_approximate(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_RCPPS || mnemonic == ZYDIS_MNEMONIC_RCPSS ||
         mnemonic == ZYDIS_MNEMONIC_RSQRTPS || mnemonic == ZYDIS_MNEMONIC_RSQRTSS;
}

bool is_state(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_FXSAVE || mnemonic == ZYDIS_MNEMONIC_FXSAVE64 ||
         mnemonic == ZYDIS_MNEMONIC_FXRSTOR || mnemonic == ZYDIS_MNEMONIC_FXRSTOR64;
}

void compare_all_sse(bool unmasked) {
  HostCpu host;
  unsigned forms = 0;
  for (const Form& form : vector_forms(VectorSet::Sse)) {
    if (is_approximate(form.mnemonic) || is_state(form.mnemonic)) continue;
    Values values(++forms);
    for (unsigned i = 0; i < 100; ++i) {
      const CpuCase start = vector_case(values, unmasked);
      const CpuResult handler = host.run_handler(form.bytes, start);
      ASSERT_TRUE(handler.known) << form.name;
      ASSERT_EQ(difference(host.run_on_host(form.bytes, start), handler), "")
          << form.name << ", case " << i << ", mxcsr " << std::hex << start.fx.mxcsr;
    }
  }
  EXPECT_GT(forms, 600u);
}

TEST(Sse, AllFormsAgreeWithTheHost) {
  compare_all_sse(false);
}
TEST(Sse, AllFormsAgreeWithTheHostWhenExceptionsAreUnmasked) {
  compare_all_sse(true);
}

// The bits of MXCSR that this host has but the guest does not: AMD's for misaligned operands.
uint32_t further_mxcsr_bits() {
  alignas(16) FxImage image;
  __builtin_ia32_fxsave64(&image);
  return image.mxcsr_mask & ~0xffffu;
}

// Any image: reserved bits of MXCSR, unusual control words, unmasked flags, empty registers.
TEST(Sse, FxsaveAndFxrstorAgreeWithTheHost) {
  HostCpu host;
  const uint32_t further = further_mxcsr_bits();
  unsigned forms = 0;
  for (const Form& form : vector_forms(VectorSet::Sse)) {
    if (!is_state(form.mnemonic)) continue;
    const bool saves = form.mnemonic == ZYDIS_MNEMONIC_FXSAVE || form.mnemonic == ZYDIS_MNEMONIC_FXSAVE64;
    Values values(++forms);
    for (unsigned i = 0; i < 500; ++i) {
      CpuCase start = vector_case(values, true);
      FxImage image = values.x87(true);
      image.control = static_cast<uint16_t>(values.random());
      image.status = static_cast<uint16_t>(values.random());
      image.opcode = static_cast<uint16_t>(values.random());
      image.instruction = values.random() >> 17;
      image.operand = values.random() >> 17;
      image.mxcsr = static_cast<uint32_t>(values.below(4) == 0 ? values.integer() : values.random() & 0xffff);
      image.mxcsr &= ~further;
      for (FxImage::Slot& st : image.st) st.high = values.random();
      for (FxImage::Slot& xmm : image.xmm) xmm = values.vector();
      for (uint8_t& byte : image.rest) byte = static_cast<uint8_t>(values.random());
      start.set_operand(image);
      const CpuResult handler = host.run_handler(form.bytes, start);
      ASSERT_TRUE(handler.known) << form.name;
      CpuResult real = host.run_on_host(form.bytes, start);
      if (saves) {
        FxImage saved = real.state.operand<FxImage>();
        saved.mxcsr_mask &= ~further;
        real.state.set_operand(saved);
      }
      ASSERT_EQ(difference(real, handler), "") << form.name << ", case " << i;
    }
  }
  EXPECT_EQ(forms, 4u);
}

TEST(Sse, AFaultLeavesEverythingAsItWas) {
  HostCpu host;
  for (const VectorSet set : {VectorSet::Sse, VectorSet::Mmx})
    for (const Form& form : vector_forms(set)) {
      Values values(1);
      CpuCase start = vector_case(values, false);
      EXPECT_EQ(trouble_with_missing_page(host, form.bytes, start), "") << form.name;
    }
}

TEST(Sse, NeedsTheUnit) {
  HostCpu host;
  const std::vector<uint8_t> pxor = {0x66, 0x0f, 0xef, 0xca}, movnti = {0x0f, 0xc3, 0x0f},
                             lfence = {0x0f, 0xae, 0xe8};
  const std::vector<uint8_t> fxsave = {0x0f, 0xae, 0x07}, stmxcsr = {0x0f, 0xae, 0x1f};
  CpuCase start;
  EXPECT_EQ(host.run_handler(pxor, start).fault, -1);
  start.cr4 &= ~cr4::kOsfxsr;
  EXPECT_EQ(host.run_handler(pxor, start).fault, kInvalidOpcode);
  EXPECT_EQ(host.run_handler(stmxcsr, start).fault, kInvalidOpcode);
  EXPECT_EQ(host.run_handler(fxsave, start).fault, -1);
  start = {};
  start.cr0 |= cr0::kTs;
  EXPECT_EQ(host.run_handler(pxor, start).fault, kNoDevice);
  EXPECT_EQ(host.run_handler(fxsave, start).fault, kNoDevice);
  start.cr0 |= cr0::kEm;
  EXPECT_EQ(host.run_handler(pxor, start).fault, kInvalidOpcode);
  EXPECT_EQ(host.run_handler(fxsave, start).fault, kNoDevice);
  // These use no vector register.
  EXPECT_EQ(host.run_handler(movnti, start).fault, -1);
  EXPECT_EQ(host.run_handler(lfence, start).fault, -1);
}

TEST(Sse, AnUnmaskedExceptionIsUndefinedWithoutTheSystemsConsent) {
  HostCpu host;
  const std::vector<uint8_t> divsd = {0xf2, 0x0f, 0x5e, 0xca};
  CpuCase start;
  start.fx.mxcsr = 0x1d80;  // division by zero
  start.fx.xmm[1].low = std::bit_cast<uint64_t>(1.0);
  EXPECT_EQ(host.run_handler(divsd, start).fault, kSimd);
  start.cr4 &= ~cr4::kOsxmmexcpt;
  const CpuResult result = host.run_handler(divsd, start);
  EXPECT_EQ(result.fault, kInvalidOpcode);
  EXPECT_EQ(result.state.fx.mxcsr, 0x1d84u);
  EXPECT_EQ(result.state.fx.xmm[1], start.fx.xmm[1]);
}

TEST(Sse, NewerInstructionsAreUndefined) {
  HostCpu host;
  for (const std::vector<uint8_t>& bytes :
       std::vector<std::vector<uint8_t>>{{0xf2, 0x0f, 0x7c, 0xca},              // haddps
                                         {0xf2, 0x0f, 0x12, 0xca},              // movddup
                                         {0xf2, 0x0f, 0xf0, 0x0f},              // lddqu
                                         {0x66, 0x0f, 0x38, 0x00, 0xca},        // pshufb
                                         {0x66, 0x0f, 0x3a, 0x15, 0x0f, 0x01},  // pextrw to memory
                                         {0x66, 0x0f, 0x38, 0x29, 0xca},        // pcmpeqq
                                         {0xc5, 0xf1, 0xef, 0xca}})             // vpxor
    EXPECT_FALSE(host.run_handler(bytes, {}).known);
}

// The host's sticky flags must not reach the guest, and the guest's modes must not reach the host.
TEST(Sse, HostAndGuestKeepTheirModesApart) {
  HostCpu host;
  const std::vector<uint8_t> addsd = {0xf2, 0x0f, 0x58, 0xca}, divss = {0xf3, 0x0f, 0x5e, 0xca};
  CpuCase start;
  start.fx.xmm[1].low = std::bit_cast<uint64_t>(1.0);
  start.fx.xmm[2].low = std::bit_cast<uint64_t>(2.0);
  volatile double third = 3.0;
  third = 1.0 / third;  // inexact on the host
  EXPECT_EQ(host.run_handler(addsd, start).state.fx.mxcsr, 0x1f80u);
  start.fx.mxcsr = 0xff80;  // towards zero, flushing
  host.run_handler(divss, start);
  volatile double two_thirds = 2.0;
  two_thirds = two_thirds / 3.0;
  EXPECT_EQ(std::bit_cast<uint64_t>(double{two_thirds}), 0x3fe5555555555555u);
  EXPECT_EQ(_mm_getcsr() & 0xffc0, 0x1f80u);
}

uint32_t approximate(HostCpu& host, uint8_t opcode, uint32_t x) {
  CpuCase start;
  start.fx.xmm[2].low = x;
  const std::vector<uint8_t> scalar = {0xf3, 0x0f, opcode, 0xca};
  return static_cast<uint32_t>(host.run_handler(scalar, start).state.fx.xmm[1].low);
}

TEST(SseApproximate, StaysWithinTheManualsError) {
  HostCpu host;
  Values values(1);
  for (unsigned i = 0; i < 20000; ++i) {
    const auto x = static_cast<uint32_t>((2 + values.below(250)) << 23 | (values.random() & 0x7fffff));
    const double exact = std::bit_cast<float>(x);
    const double reciprocal = std::bit_cast<float>(approximate(host, 0x53, x));
    const double root = std::bit_cast<float>(approximate(host, 0x52, x));
    ASSERT_LE(std::fabs(reciprocal * exact - 1), 1.5 / 4096) << x;
    ASSERT_LE(std::fabs(root * std::sqrt(exact) - 1), 1.5 / 4096) << x;
    // Twelve bits, rounded half up.
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(reciprocal)) & 0xfff, 0u);
    ASSERT_LE(std::fabs(reciprocal - 1 / exact), std::ldexp(1.0, std::ilogb(1 / exact) - 12)) << x;
  }
  EXPECT_EQ(approximate(host, 0x53, std::bit_cast<uint32_t>(3.0f)), 0x3eaab000u);
  EXPECT_EQ(approximate(host, 0x52, std::bit_cast<uint32_t>(2.0f)), 0x3f350000u);
  EXPECT_EQ(approximate(host, 0x52, std::bit_cast<uint32_t>(4.0f)), 0x3f000000u);
}

// Their exact results: zeros, infinities, NaNs, denormals and tiny results. No flags are set.
TEST(SseApproximate, SpecialValuesAgreeWithTheHost) {
  HostCpu host;
  const uint32_t specials[] = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x7f800000,
                               0xff800000, 0x7f800001, 0xffbfffff, 0x7fc12345, 0xffc00000,
                               0x7f7fffff, 0xff7fffff, 0xbf800000};
  for (const uint8_t opcode : {uint8_t{0x52}, uint8_t{0x53}})
    for (const std::vector<uint8_t>& bytes :
         {std::vector<uint8_t>{0x0f, opcode, 0xca}, {0xf3, 0x0f, opcode, 0x0f}})
      for (const uint32_t mxcsr : {0x1f80u, 0xffc0u, 0x0000u})
        for (const uint32_t x : specials) {
          if (x == 0xbf800000 && opcode == 0x53) continue;  // an ordinary number for a reciprocal
          if ((x & 0x7fffffff) == 0x7f7fffff && x >> 31 == 0 && opcode == 0x52) continue;
          CpuCase start;
          start.fx.mxcsr = mxcsr;
          start.fx.xmm[1] = {0x1111111122222222, 0x3333333344444444};
          start.fx.xmm[2] = {x | uint64_t{x} << 32, x | uint64_t{x} << 32};
          start.set_operand(start.fx.xmm[2]);
          ASSERT_EQ(difference(host.run_on_host(bytes, start), host.run_handler(bytes, start)), "")
              << std::hex << x;
        }
}

}  // namespace
}  // namespace slalom::vm
