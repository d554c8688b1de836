// ORC tables of the three kinds that kernels have, written by hand; and tables that cannot be.
#include "symbols/orc.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/little_endian.h"
#include "unit/symbols/btf_section.h"

namespace slalom {
namespace {

constexpr uint64_t kPlaces = 0xffffffff82000000, kRules = 0xffffffff82001000, kText = 0xffffffff81000000;

using Row = UnwindRow;

struct Tables final : GuestMemory {
  bool read(uint64_t address, std::span<uint8_t> out) override {
    const bool first = address >= kPlaces && address < kRules;
    const auto part = part_of(first ? places : rules, address - (first ? kPlaces : kRules), out.size());
    if (part) std::memcpy(out.data(), part->data(), out.size());
    return part.has_value();
  }
  void add(uint64_t address, int16_t offset, int16_t rbp, unsigned bits) {
    append_le(places, static_cast<uint32_t>(address - (kPlaces + places.size())));
    append_le(rules, static_cast<uint16_t>(offset));
    append_le(rules, static_cast<uint16_t>(rbp));
    append_le(rules, static_cast<uint16_t>(bits));
  }
  std::vector<Row> rows(bool newer, uint64_t more = 0) {
    BtfSection section;
    const uint32_t number = section.plain(BtfSection::Int, "int", 4);
    section.members(BtfSection::Struct, "orc_entry", 6,
                    {{"sp_offset", number, 0}, {newer ? "signal" : "end", number, 32}});
    const auto types = Btf::parse(section.bytes());
    EXPECT_TRUE(types.ok());
    const SymbolTable symbols(std::vector<Symbol>{
        {.address = kPlaces, .size = 1, .name = "__start_orc_unwind_ip"},
        {.address = kPlaces + places.size(), .size = 1, .name = "__stop_orc_unwind_ip"},
        {.address = kRules, .size = 1, .name = "__start_orc_unwind"},
        {.address = kRules + rules.size() + more, .size = 1, .name = "__stop_orc_unwind"}});
    return read_orc(*this, symbols, *types);
  }
  std::vector<uint8_t> places, rules;
};

constexpr unsigned bits(unsigned frame, unsigned rbp, unsigned type) {
  return frame | rbp << 4 | type << 8;
}

// The same code, as kernels before 6.4, since then, and of 7.x describe it.
struct Form {
  bool newer;
  unsigned sp, bp, previous, before, call, registers, partial;
};
constexpr Form kForms[] = {
    {false, 5, 4, 1, 9, 0, 1, 2}, {true, 5, 4, 1, 9, 2, 3, 4}, {true, 3, 4, 8, 9, 2, 3, 4}};

TEST(Orc, AllFormsMeanTheSame) {
  for (const Form& form : kForms) {
    Tables tables;
    tables.add(kText, 8, 0, bits(form.sp, 0, form.call));
    tables.add(kText + 1, 16, -16, bits(form.sp, form.previous, form.call));
    tables.add(kText + 9, 16, -16, bits(form.bp, form.previous, form.call));
    tables.add(kText + 40, 0, 0, bits(form.sp, 0, form.registers));
    tables.add(kText + 50, 8, 0, bits(form.sp, 0, form.partial));
    tables.add(kText + 60, 8, 0, bits(form.before, 0, form.call));
    tables.add(kText + 30, 0, 0, 0);
    const std::vector<Row> rows = tables.rows(form.newer);
    ASSERT_EQ(rows.size(), 7u);
    const auto same = [&](size_t i, const Row& expected) {
      EXPECT_EQ(rows[i].address, expected.address);
      EXPECT_TRUE(rows[i].same_rule(expected)) << i;
    };
    same(0, {.address = kText, .kind = Row::Kind::Call, .offset = 8});
    same(1, {.address = kText + 1, .kind = Row::Kind::Call, .offset = 16, .rbp_offset = -16});
    same(2, {.address = kText + 9,
             .kind = Row::Kind::Call,
             .base = Row::Base::Rbp,
             .offset = 16,
             .rbp_offset = -16});
    same(3, {.address = kText + 30});
    same(4, {.address = kText + 40, .kind = Row::Kind::Registers});
    same(5, {.address = kText + 50, .kind = Row::Kind::Return, .offset = 8});
    same(6, {.address = kText + 60, .kind = Row::Kind::Call, .indirect = Row::Indirect::Before, .offset = 8});
  }
}

TEST(Orc, TablesThatCannotBeAreNone) {
  Tables tables;
  tables.add(kText, 8, 0, bits(5, 0, 0));
  EXPECT_EQ(tables.rows(false).size(), 1u);
  EXPECT_TRUE(tables.rows(false, 6).empty());  // more rules than places, and than memory
  EXPECT_TRUE(tables.rows(false, uint64_t{1} << 40).empty());
  EXPECT_TRUE(Tables().rows(false).empty());
}

}  // namespace
}  // namespace slalom
