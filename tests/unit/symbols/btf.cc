// Types written here and read back. tests/vm/symbols_test.cc compares all types of real kernels with libbpf.
#include "symbols/btf.h"

#include <gtest/gtest.h>

#include "unit/symbols/btf_section.h"

namespace slalom {
namespace {

Btf parsed(const BtfSection& section) {
  Result<Btf> btf = Btf::parse(section.bytes());
  EXPECT_TRUE(btf.ok()) << (btf.ok() ? "" : btf.error().message);
  return *std::move(btf);
}

TEST(Btf, PathsLeadToMembers) {
  const Btf btf = parsed(task_types());
  const auto place = [&](std::string_view path) {
    const std::optional<Btf::Field> field = btf.field(path);
    return field ? std::pair(field->offset, field->size) : std::pair<uint64_t, uint64_t>(9999, 9999);
  };
  using Place = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(place("task.flags"), Place(0, 4));
  EXPECT_EQ(place("task.a"), Place(8, 8));
  EXPECT_EQ(place("task.lo"), Place(8, 4));  // two levels of anonymous structs
  EXPECT_EQ(place("task.hi"), Place(12, 4));
  EXPECT_EQ(place("task.comm"), Place(16, 16));
  EXPECT_EQ(place("task.comm[15]"), Place(31, 1));
  EXPECT_EQ(place("task.next"), Place(32, 8));
  EXPECT_EQ(place("task.se[2].y"), Place(48 + 32 + 8, 8));
  EXPECT_EQ(place("entity_t.y"), Place(8, 8));
  EXPECT_EQ(place("task"), Place(0, 104));
  for (const std::string_view wrong :
       {"", ".", "task.", "task.none", "task.flags.x", "task.comm[16]", "task.comm[x]", "task.comm[",
        "task.next.flags", "none.flags", "task..flags", "lo", "task.comm[-1]"})
    EXPECT_EQ(btf.field(wrong), std::nullopt) << wrong;
  EXPECT_EQ(btf.struct_name(*btf.field("task.next")), "task");
  EXPECT_EQ(btf.struct_name(*btf.field("task.flags")), "");
}

TEST(Btf, BitfieldsHaveTheirBits) {
  const Btf btf = parsed(task_types());
  const Btf::Field more = btf.field("task.more").value();
  EXPECT_EQ(more.offset, 40u);
  EXPECT_EQ(more.bit_shift, 1u);
  EXPECT_EQ(more.bit_size, 9u);
  EXPECT_EQ(more.size, 2u);
}

TEST(Btf, SizesAndEnumerators) {
  const Btf btf = parsed(task_types());
  EXPECT_EQ(btf.size_of("task"), 104u);
  EXPECT_EQ(btf.size_of("entity_t"), 16u);
  EXPECT_EQ(btf.size_of("state"), 4u);
  EXPECT_EQ(btf.size_of("none"), std::nullopt);
  EXPECT_EQ(btf.enumerator("RUNNING"), 0);
  EXPECT_EQ(btf.enumerator("NEGATIVE"), -3);
  EXPECT_EQ(btf.enumerator("HUGE"), 0x123456789a);
  EXPECT_EQ(btf.enumerator("none"), std::nullopt);
  EXPECT_EQ(btf.element_count("task.se"), 3u);
  EXPECT_EQ(btf.element_count("task.flags"), std::nullopt);
}

TEST(Btf, OffsetsAreDescribed) {
  const Btf btf = parsed(task_types());
  EXPECT_EQ(btf.describe("task", 0), "task.flags");
  EXPECT_EQ(btf.describe("task", 2), "task.flags+0x2");
  EXPECT_EQ(btf.describe("task", 4), "task+0x4");  // padding
  EXPECT_EQ(btf.describe("task", 12), "task.a+0x4");
  EXPECT_EQ(btf.describe("task", 19), "task.comm[3]");
  EXPECT_EQ(btf.describe("task", 40), "task.on");
  EXPECT_EQ(btf.describe("task", 41), "task.more+0x1");
  EXPECT_EQ(btf.describe("task", 48 + 16 + 12), "task.se[1].y+0x4");
  EXPECT_EQ(btf.describe("task", 200), "task+0xc8");
  EXPECT_EQ(btf.describe("none", 8), "none+0x8");
}

TEST(Btf, TypesThatReferToThemselvesEnd) {
  BtfSection section;
  section.plain(BtfSection::Typedef, "loop", 1);
  section.members(BtfSection::Struct, "self", 8, {{"", 2, 0}, {"", 2, 0}, {"", 2, 0}, {"x", 99, 0}});
  section.array(3, 4);
  section.members(BtfSection::Struct, "arrays", 8, {{"a", 3, 0}});
  const Btf btf = parsed(section);
  EXPECT_EQ(btf.size_of("loop"), std::nullopt);
  EXPECT_EQ(btf.field("self.none"), std::nullopt);
  EXPECT_EQ(btf.field("arrays.a")->size, 0u);
  EXPECT_EQ(btf.describe("self", 0), "self");
  EXPECT_EQ(btf.describe("arrays", 0), "arrays");
}

TEST(Btf, WhatIsCutOrForeignIsRefused) {
  const std::vector<uint8_t> whole = task_types().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(Btf::parse(cut).ok()) << size;
  }
  std::vector<uint8_t> newer = whole;
  newer[2] = 2;
  EXPECT_NE(Btf::parse(newer).error().message.find("version 2"), std::string::npos);
  std::vector<uint8_t> unknown = whole;
  unknown[24 + 7] = 0x1e;  // the first type's kind
  EXPECT_NE(Btf::parse(unknown).error().message.find("kind of type (30)"), std::string::npos);
}

}  // namespace
}  // namespace slalom
