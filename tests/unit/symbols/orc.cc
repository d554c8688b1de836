// Hand-written ORC tables of the three kinds that kernels have, and impossible tables.
#include "symbols/orc.h"

#include <gtest/gtest.h>

#include <cstring>

#include "unit/symbols/orc_tables.h"

namespace slalom {
namespace {

constexpr uint64_t kPlaces = OrcTables::kPlaces, kRules = OrcTables::kRules, kOrcText = OrcTables::kText;

using Row = UnwindRow;

struct Tables final : GuestMemory {
  Tables() = default;
  explicit Tables(OrcTables tables) : held(std::move(tables)) {}
  bool read(uint64_t address, std::span<uint8_t> out) override {
    const bool first = address >= kPlaces && address < kRules;
    const auto part =
        part_of(first ? held.places : held.rules, address - (first ? kPlaces : kRules), out.size());
    if (part) std::memcpy(out.data(), part->data(), out.size());
    return part.has_value();
  }
  std::vector<Row> rows(bool newer, uint64_t more = 0) {
    const auto types = orc_types(newer);
    EXPECT_TRUE(types.ok());
    const SymbolTable symbols(std::vector<Symbol>{
        {.address = kPlaces, .size = 1, .name = "__start_orc_unwind_ip"},
        {.address = kPlaces + held.places.size(), .size = 1, .name = "__stop_orc_unwind_ip"},
        {.address = kRules, .size = 1, .name = "__start_orc_unwind"},
        {.address = kRules + held.rules.size() + more, .size = 1, .name = "__stop_orc_unwind"}});
    return read_orc(*this, symbols, *types);
  }
  OrcTables held;
};

TEST(Orc, AllFormsMeanTheSame) {
  for (const OrcForm& form : kOrcForms) {
    Tables tables(form.tables());
    const std::vector<Row> rows = tables.rows(form.newer);
    ASSERT_EQ(rows.size(), 7u);
    const auto same = [&](size_t i, const Row& expected) {
      EXPECT_EQ(rows[i].address, expected.address);
      EXPECT_TRUE(rows[i].same_rule(expected)) << i;
    };
    same(0, {.address = kOrcText, .kind = Row::Kind::Call, .offset = 8});
    same(1, {.address = kOrcText + 1, .kind = Row::Kind::Call, .offset = 16, .rbp_offset = -16});
    same(2, {.address = kOrcText + 9,
             .kind = Row::Kind::Call,
             .base = Row::Base::Rbp,
             .offset = 16,
             .rbp_offset = -16});
    same(3, {.address = kOrcText + 30});
    same(4, {.address = kOrcText + 40, .kind = Row::Kind::Registers});
    same(5, {.address = kOrcText + 50, .kind = Row::Kind::Return, .offset = 8});
    same(6,
         {.address = kOrcText + 60, .kind = Row::Kind::Call, .indirect = Row::Indirect::Before, .offset = 8});
  }
}

// A row of unknown kind gives no rule, whatever else is in it.
TEST(Orc, ARowOfNoKindHasNoRule) {
  for (const unsigned kind : {0u, 1u, 5u}) {
    Tables tables;
    for (int i = 0; i < 3; ++i) tables.held.add(kOrcText + i, 8, 0, OrcForm::bits(5, 0, 2));
    tables.held.add(kOrcText + 10, 16, -16, OrcForm::bits(5, 1, kind));
    const std::vector<Row> rows = tables.rows(true);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_TRUE(rows[3].same_rule({.address = kOrcText + 10})) << kind;
    EXPECT_FALSE(rows[2].same_rule(rows[3]));
  }
}

TEST(Orc, TablesThatCannotBeAreNone) {
  Tables tables;
  tables.held.add(kOrcText, 8, 0, OrcForm::bits(5, 0, 0));
  EXPECT_EQ(tables.rows(false).size(), 1u);
  EXPECT_TRUE(tables.rows(false, 6).empty());  // more rules than places, and than memory
  EXPECT_TRUE(tables.rows(false, uint64_t{1} << 40).empty());
  EXPECT_TRUE(Tables().rows(false).empty());
}

}  // namespace
}  // namespace slalom
