// Writes .BTF sections, for tests of the reader.
#pragma once

#include <string_view>
#include <vector>

#include "base/little_endian.h"

namespace slalom {

class BtfSection {
 public:
  enum Kind : uint32_t {
    Int = 1,
    Pointer,
    Array,
    Struct,
    Union,
    Enum,
    Forward,
    Typedef,
    Volatile,
    Const,
    Enum64 = 19
  };
  struct Member {
    std::string_view name;
    uint32_t type = 0;
    uint32_t place = 0;  // in bits; with a bitfield's size in the upper byte
  };
  struct Value {
    std::string_view name;
    uint64_t value = 0;
  };

  // Each function returns the new type's number.
  uint32_t plain(Kind kind, std::string_view name, uint32_t size_or_type) {
    const uint32_t id = begin(kind, name, 0, size_or_type);
    if (kind == Int) word(0);
    return id;
  }
  uint32_t array(uint32_t of, uint32_t count) {
    const uint32_t id = begin(Array, "", 0, 0);
    word(of), word(1), word(count);
    return id;
  }
  uint32_t members(Kind kind, std::string_view name, uint32_t size, const std::vector<Member>& members,
                   bool bitfields = false) {
    const uint32_t id = begin(kind, name, static_cast<uint32_t>(members.size()), size, bitfields);
    for (const Member& member : members) word(text(member.name)), word(member.type), word(member.place);
    return id;
  }
  uint32_t values(Kind kind, std::string_view name, const std::vector<Value>& values, bool has_sign = false) {
    const uint32_t id =
        begin(kind, name, static_cast<uint32_t>(values.size()), kind == Enum ? 4 : 8, has_sign);
    for (const Value& value : values) {
      word(text(value.name)), word(static_cast<uint32_t>(value.value));
      if (kind == Enum64) word(static_cast<uint32_t>(value.value >> 32));
    }
    return id;
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> all = {0x9f, 0xeb, 1, 0};
    const auto types_size = static_cast<uint32_t>(types_.size()),
               strings_size = static_cast<uint32_t>(strings_.size());
    for (const uint32_t number : {24u, 0u, types_size, types_size, strings_size}) append_le(all, number);
    all.insert(all.end(), types_.begin(), types_.end());
    all.insert(all.end(), strings_.begin(), strings_.end());
    return all;
  }

 private:
  void word(uint32_t value) { append_le(types_, value); }
  uint32_t text(std::string_view text) {
    if (text.empty()) return 0;
    const auto at = static_cast<uint32_t>(strings_.size());
    strings_.insert(strings_.end(), text.begin(), text.end());
    strings_.push_back(0);
    return at;
  }
  uint32_t begin(Kind kind, std::string_view name, uint32_t count, uint32_t size_or_type, bool flag = false) {
    word(text(name)), word(kind << 24 | count | (flag ? 0x80000000 : 0)), word(size_or_type);
    return ++last_;
  }

  std::vector<uint8_t> types_, strings_ = {0};
  uint32_t last_ = 0;
};

// struct task { int flags; union { long a; struct { int lo, hi; }; }; char comm[16]; const struct task *next;
//               unsigned on : 1, more : 9; entity_t se[3]; };   typedef struct { int x; long y; } entity_t;
inline BtfSection task_types() {
  BtfSection btf;
  const uint32_t integer = btf.plain(BtfSection::Int, "int", 4);
  const uint32_t wide = btf.plain(BtfSection::Int, "long", 8);
  const uint32_t letter = btf.plain(BtfSection::Int, "char", 1);
  const uint32_t halves = btf.members(BtfSection::Struct, "", 8, {{"lo", integer, 0}, {"hi", integer, 32}});
  const uint32_t either = btf.members(BtfSection::Union, "", 8, {{"a", wide, 0}, {"", halves, 0}});
  const uint32_t name = btf.array(letter, 16);
  const uint32_t entity = btf.members(BtfSection::Struct, "", 16, {{"x", integer, 0}, {"y", wide, 64}});
  const uint32_t entity_t = btf.plain(BtfSection::Typedef, "entity_t", entity);
  const uint32_t entities = btf.array(entity_t, 3);
  constexpr uint32_t kTask = 13;
  const uint32_t constant = btf.plain(BtfSection::Const, "", kTask);
  const uint32_t pointer = btf.plain(BtfSection::Pointer, "", constant);
  btf.values(BtfSection::Enum, "state", {{"RUNNING", 0}, {"NEGATIVE", static_cast<uint32_t>(-3)}}, true);
  btf.members(BtfSection::Struct, "task", 104,
              {{"flags", integer, 0},
               {"", either, 64},
               {"comm", name, 128},
               {"next", pointer, 256},
               {"on", integer, 320 | 1 << 24},
               {"more", integer, 321 | 9 << 24},
               {"se", entities, 384}},
              true);
  btf.values(BtfSection::Enum64, "", {{"HUGE", 0x123456789a}});
  return btf;
}

}  // namespace slalom
