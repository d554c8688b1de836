// The reader of kallsyms against a writer of them. tests/vm/symbols_test.cc reads real kernels.
#include "symbols/kallsyms.h"

#include <gtest/gtest.h>

#include "unit/symbols/kallsyms_image.h"

namespace slalom {
namespace {

class KallsymsLayouts : public testing::TestWithParam<KallsymsLayout> {};

TEST_P(KallsymsLayouts, EverySymbolComesBack) {
  const KallsymsLayout layout = GetParam();
  const bool mixed = layout != KallsymsLayout::NewFromBase && layout != KallsymsLayout::NewFromSelf;
  // Names that end at, before and after a marker and an alignment.
  for (const size_t count : {513u, 767u, 768u, 769u, 1024u, 5001u, 5002u, 5003u}) {
    const SymbolTable expected(some_kernel_symbols(count, mixed));
    const KallsymsImage image(expected.symbols(), layout);
    const Result<SymbolTable> found = read_kallsyms(image.bytes, KallsymsImage::kAddress);
    ASSERT_TRUE(found.ok()) << count << ": " << found.error().message;
    EXPECT_EQ(found->symbols(), expected.symbols()) << count;
  }
}

TEST_P(KallsymsLayouts, ACutOrChangedTableIsRefusedOrReadWithinItsBytes) {
  const std::vector<Symbol> symbols = some_kernel_symbols(1000, false);
  const KallsymsImage image(symbols, GetParam(), 64);
  for (size_t size = 0; size < image.bytes.size(); size += 97) {
    // A copy of exactly that size, so that the sanitizers see a read beyond its end.
    const std::vector<uint8_t> cut(image.bytes.begin(), image.bytes.begin() + static_cast<ptrdiff_t>(size));
    const Result<SymbolTable> found = read_kallsyms(cut, KallsymsImage::kAddress);
    if (found.ok()) {
      EXPECT_EQ(found->size(), symbols.size());
    } else {
      EXPECT_NE(found.error().message.find("vmlinux"), std::string::npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KallsymsLayouts,
                         testing::Values(KallsymsLayout::Old, KallsymsLayout::OldWithNumbers,
                                         KallsymsLayout::New, KallsymsLayout::NewFromBase,
                                         KallsymsLayout::NewFromSelf));

// Offsets that do not rise are interpreted wrongly. Any names from them would be wrong.
TEST_P(KallsymsLayouts, AddressesThatFallAreRefused) {
  std::vector<Symbol> symbols = some_kernel_symbols(1000, false);
  ASSERT_TRUE(read_kallsyms(KallsymsImage(symbols, GetParam()).bytes, KallsymsImage::kAddress).ok());
  std::swap(symbols[200].address, symbols[800].address);
  EXPECT_FALSE(read_kallsyms(KallsymsImage(symbols, GetParam()).bytes, KallsymsImage::kAddress).ok());
}

TEST(Kallsyms, SaysWhenThereAreNone) {
  const Result<SymbolTable> found = read_kallsyms(std::vector<uint8_t>(100'000), 0);
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message.find("CONFIG_KALLSYMS"), std::string::npos);
}

}  // namespace
}  // namespace slalom
