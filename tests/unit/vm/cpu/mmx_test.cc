// MMX against the host CPU.
#include <gtest/gtest.h>

#include "unit/vm/cpu/vector_forms.h"

namespace slalom::vm {
namespace {

// Some cases with unmasked x87 exceptions start with a pending one: #MF.
TEST(Mmx, AllFormsAgreeWithTheHost) {
  HostCpu host;
  unsigned forms = 0;
  for (const Form& form : vector_forms(VectorSet::Mmx)) {
    Values values(++forms);
    for (unsigned i = 0; i < 120; ++i) {
      const CpuCase start = vector_case(values, i % 2 != 0);
      const CpuResult handler = host.run_handler(form.bytes, start);
      ASSERT_TRUE(handler.known) << form.name;
      ASSERT_EQ(difference(host.run_on_host(form.bytes, start), handler), "") << form.name << ", case " << i;
    }
  }
  EXPECT_GT(forms, 200u);
}

TEST(Mmx, NeedsTheUnit) {
  HostCpu host;
  const std::vector<uint8_t> paddb = {0x0f, 0xfc, 0xca};
  CpuCase start;
  start.cr4 &= ~cr4::kOsfxsr;  // XMM registers are not needed
  EXPECT_EQ(host.run_handler(paddb, start).fault, -1);
  start.cr0 |= cr0::kTs;
  EXPECT_EQ(host.run_handler(paddb, start).fault, kNoDevice);
  start.cr0 |= cr0::kEm;
  EXPECT_EQ(host.run_handler(paddb, start).fault, kInvalidOpcode);
}

TEST(Mmx, NewerInstructionsAreUndefined) {
  HostCpu host;
  for (const std::vector<uint8_t>& bytes :
       std::vector<std::vector<uint8_t>>{{0x0f, 0x38, 0x00, 0xca},         // pshufb
                                         {0x0f, 0x38, 0x1c, 0xca},         // pabsb
                                         {0x0f, 0x3a, 0x0f, 0xca, 0x01}})  // palignr
    EXPECT_FALSE(host.run_handler(bytes, {}).known);
}

}  // namespace
}  // namespace slalom::vm
