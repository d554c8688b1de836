// Btf: the types of a kernel, from the .BTF section that it carries.
//
// Answers where a member lies (task_struct.comm), how large a struct is, what an enumerator is worth, and
// which member an offset falls into. The bytes are not trusted: every type is checked when it is parsed, and
// types that refer to each other in circles end in "not found". Read here rather than by libbpf, which finds
// names by comparing all of them, does not know anonymous members, and in the version of stable distributions
// believes references between types; the tests compare both on real kernels.
//
// Not for values, lines or variables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

class Btf {
 public:
  static Result<Btf> parse(std::span<const uint8_t> section);

  // How many types there are; their numbers are 1 .. count.
  uint32_t type_count() const { return static_cast<uint32_t>(types_.size()) - 1; }

  struct Field {
    uint64_t offset = 0;     // in bytes, from the start of the struct that the path begins with
    uint64_t size = 0;       // in bytes; of a bitfield: of the bytes that it touches
    uint32_t bit_size = 0;   // of a bitfield; otherwise 0
    uint32_t bit_shift = 0;  // of a bitfield: its lowest bit, from `offset` on
    uint32_t type = 0;
    bool operator==(const Field&) const = default;
  };
  // "task_struct.comm", "module.kallsyms", "task_struct.se.vruntime", "module.mem[1].base": a struct, union
  // or typedef, then members. Members of anonymous structs and unions are named as in C.
  std::optional<Field> field(std::string_view path) const;

  // Of a struct, union, typedef or enum.
  std::optional<uint64_t> size_of(std::string_view type) const;
  // By its own name: enumerators of one kernel have different ones, or the same value.
  std::optional<int64_t> enumerator(std::string_view name) const;
  // How many elements the array has that the path leads to.
  std::optional<uint64_t> element_count(std::string_view path) const;

  // What lies at an offset: "task_struct.flags", "task_struct.comm[3]", "task_struct.se.vruntime+0x4";
  // padding and what lies outside is "task_struct+0x10".
  std::string describe(std::string_view type, uint64_t offset) const;
  // The struct's name when the field is one, or a pointer to one; "" otherwise.
  std::string_view struct_name(const Field& field) const;

 private:
  struct Type {
    uint32_t name = 0;  // in the strings
    uint8_t kind = 0;
    bool flag = false;     // the members hold bitfield sizes, the enumerators have signs
    uint16_t count = 0;    // members, enumerators ...
    uint32_t size = 0;     // in bytes, or the number of the type that this one refers to
    uint64_t details = 0;  // where what follows it lies in the bytes
  };
  struct Member {
    std::string_view name;
    uint32_t type = 0;
    uint64_t bit_offset = 0;
    uint32_t bit_size = 0;
  };

  uint32_t word(uint64_t at) const;
  std::string_view text(uint32_t offset) const;
  const Type& type(uint32_t id) const;
  uint32_t strip(uint32_t id) const;  // of typedefs and qualifiers
  std::optional<uint64_t> size_of(uint32_t id, int depth = 0) const;
  bool is_struct(uint32_t id) const;
  Member member(const Type& owner, uint32_t i) const;
  Field field_of(const Member& member, uint64_t base_bits) const;
  std::optional<Field> find_member(uint32_t id, std::string_view name, uint64_t base_bits, uint32_t& budget,
                                   int depth = 0) const;
  std::optional<Field> follow(uint32_t id, std::string_view path) const;
  std::optional<Field> element(const Field& array, uint64_t index) const;
  std::vector<uint32_t> named(std::string_view name) const;

  std::vector<uint8_t> bytes_;
  uint64_t strings_ = 0, strings_size_ = 0;
  std::vector<Type> types_;        // by number; the first is void
  std::vector<uint32_t> by_name_;  // structs, unions, typedefs and enums that have one, sorted by it
};

}  // namespace slalom
