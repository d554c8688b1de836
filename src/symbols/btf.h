// Btf: the types of a kernel, from the .BTF section that it carries.
//
// It answers where a member lies (task_struct.comm), how large a struct is, what the value of an enumerator
// is, and which member an offset falls into. The bytes are untrusted: parse() checks every type, and types
// that refer to each other in circles give "not found".
//
// slalom reads BTF itself rather than with libbpf. libbpf finds names by comparing all of them and does not
// know anonymous members, and its version in stable distributions trusts references between types. The tests
// compare both on real kernels.
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

  // The number of types. Types are numbered 1 .. count.
  uint32_t type_count() const { return static_cast<uint32_t>(types_.size()) - 1; }

  struct Field {
    uint64_t offset = 0;     // in bytes, from the start of the path's first struct
    uint64_t size = 0;       // in bytes; of a bitfield: of the bytes that it touches
    uint32_t bit_size = 0;   // of a bitfield; else 0
    uint32_t bit_shift = 0;  // of a bitfield: its lowest bit, counted from `offset`
    uint32_t type = 0;
    bool operator==(const Field&) const = default;
  };
  // Finds a member by its path: a struct, union or typedef, then members. Examples: "task_struct.comm",
  // "module.kallsyms", "task_struct.se.vruntime", "module.mem[1].base". Members of anonymous structs and
  // unions are named as in C.
  std::optional<Field> field(std::string_view path) const;

  // Returns the size of a struct, union, typedef or enum, in bytes.
  std::optional<uint64_t> size_of(std::string_view type) const;
  // Finds an enumerator by its own name. Enumerators of one kernel with the same name have the same value.
  std::optional<int64_t> enumerator(std::string_view name) const;
  // Returns the number of elements of the array to which the path leads.
  std::optional<uint64_t> element_count(std::string_view path) const;

  // Returns what lies at an offset: "task_struct.flags", "task_struct.comm[3]",
  // "task_struct.se.vruntime+0x4". Padding, and what lies outside, is "task_struct+0x10".
  std::string describe(std::string_view type, uint64_t offset) const;
  // Returns the struct's name if the field is a struct or a pointer to one, else "".
  std::string_view struct_name(const Field& field) const;

 private:
  struct Type {
    uint32_t name = 0;  // offset in the strings
    uint8_t kind = 0;
    bool flag = false;     // members have bitfield sizes; enumerators are signed
    uint16_t count = 0;    // members, enumerators ...
    uint32_t size = 0;     // in bytes, or the number of the referenced type
    uint64_t details = 0;  // where the rest of the type lies in the bytes
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
  uint32_t strip(uint32_t id) const;  // removes typedefs and qualifiers
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
  std::vector<uint32_t> by_name_;  // named structs, unions, typedefs and enums, sorted by name
};

}  // namespace slalom
