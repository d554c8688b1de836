#include "symbols/symbol_table.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace slalom {
namespace {

SymbolTable small_table() {
  return SymbolTable({
      {.address = 0x3000, .size = 0x100, .name = "outer", .type = 'T'},
      {.address = 0x3010, .size = 0x10, .name = "inner", .type = 't'},
      {.address = 0x1000, .name = "first", .type = 'T'},
      {.address = 0x1000, .name = "alias", .type = 'T'},
      {.address = 0x2000, .size = 0x80, .name = "twice", .type = 't'},
      {.address = 0x10, .name = "per_cpu", .type = 'D', .is_offset = true},
      {.address = 0xa000, .size = 0x20, .name = "twice", .module = "ext4", .type = 't'},
      {.address = 0xa040, .name = "last", .module = "ext4", .type = 'T'},
  });
}

TEST(SymbolTable, AddressesAreDescribedByWhatCoversThem) {
  const SymbolTable table = small_table();
  EXPECT_EQ(table.describe(0x1000), "first");
  EXPECT_EQ(table.describe(0x1fff), "first+0xfff");  // to the next symbol
  EXPECT_EQ(table.describe(0x207f), "twice+0x7f");
  EXPECT_EQ(table.describe(0x2080), "0x2080");  // its size is known
  EXPECT_EQ(table.describe(0x3012), "inner+0x2");
  EXPECT_EQ(table.describe(0x3020), "outer+0x20");
  EXPECT_EQ(table.describe(0x3100), "0x3100");
  EXPECT_EQ(table.describe(0xa01f), "ext4:twice+0x1f");
  EXPECT_EQ(table.describe(0xa040), "ext4:last");
  EXPECT_EQ(table.describe(0xa041), "0xa041");  // the last symbol of a module covers only its address
  EXPECT_EQ(table.describe(0x10), "0x10");      // an offset is no address
  EXPECT_EQ(table.describe(0), "0x0");
  EXPECT_EQ(SymbolTable().describe(0x10), "0x10");
}

// A symbol without a size ends at the next symbol of the same module, not of another one.
TEST(SymbolTable, ModulesDoNotEndEachOthersSymbols) {
  const SymbolTable table({
      {.address = 0xa000, .name = "first", .module = "ext4"},
      {.address = 0xa020, .name = "between", .module = "xfs"},
      {.address = 0xa040, .size = 0x10, .name = "second", .module = "ext4"},
      {.address = 0xf000, .name = "high"},
      {.address = 0xf100, .name = "higher"},
  });
  EXPECT_EQ(table.describe(0xa01f), "ext4:first+0x1f");
  EXPECT_EQ(table.describe(0xa03f),
            "ext4:first+0x3f");                 // xfs:between has no size, and is the last of its own
  EXPECT_EQ(table.describe(0xa050), "0xa050");  // after both
  EXPECT_EQ(table.describe(0xf0ff), "high+0xff");
}

TEST(SymbolTable, NamesMayBeSharedAndQualified) {
  const SymbolTable table = small_table();
  ASSERT_EQ(table.named("twice").size(), 2u);
  EXPECT_EQ(table.named("twice")[0]->address, 0x2000u);
  EXPECT_EQ(table.named("twice")[1]->full_name(), "ext4:twice");
  ASSERT_EQ(table.named("ext4:twice").size(), 1u);
  EXPECT_EQ(table.address_of("ext4:twice"), 0xa000u);
  EXPECT_EQ(table.address_of(":twice"), 0x2000u);  // the kernel's own
  EXPECT_EQ(table.address_of("alias"), 0x1000u);
  EXPECT_EQ(table.address_of("per_cpu"), 0x10u);
  EXPECT_EQ(table.address_of("xfs:twice"), std::nullopt);
  EXPECT_EQ(table.address_of("nothing"), std::nullopt);
}

TEST(SymbolTable, MergedTablesAnswerAsOne) {
  const SymbolTable kernel({{.address = 0x1000, .name = "a"}, {.address = 0x2000, .name = "b"}});
  const SymbolTable module({{.address = 0x1800, .size = 8, .name = "m", .module = "mod"}});
  const SymbolTable both = SymbolTable::merge(kernel, module);
  EXPECT_EQ(both.size(), 3u);
  EXPECT_EQ(both.describe(0x1804), "mod:m+0x4");
  EXPECT_EQ(both.describe(0x1900), "a+0x900");  // found below the module's symbol, which is too short
  EXPECT_EQ(both.describe(0x2001), "0x2001");
  EXPECT_EQ(both.address_of("b"), 0x2000u);
}

// Compared with the simplest possible search.
TEST(SymbolTable, AgreesWithALinearSearch) {
  Rng rng(1, 0);
  for (int round = 0; round < 50; ++round) {
    std::vector<Symbol> symbols;
    for (int i = 0; i < 40; ++i)
      symbols.push_back(
          {.address = rng.below(64) * 16, .size = 1 + rng.below(16), .name = "s" + std::to_string(i)});
    const SymbolTable table(symbols);
    for (uint64_t address = 0; address < 64 * 16 + 32; ++address) {
      const Symbol* expected = nullptr;
      for (const Symbol& symbol : symbols)
        if (address >= symbol.address && address - symbol.address < symbol.size)
          if (expected == nullptr) expected = &symbol;
      const Symbol* found = table.at(address);
      ASSERT_EQ(found != nullptr, expected != nullptr) << round << ": " << address;
      if (found != nullptr) {
        EXPECT_EQ(*found, *expected) << round << ": " << address;
      }
    }
  }
}

}  // namespace
}  // namespace slalom
