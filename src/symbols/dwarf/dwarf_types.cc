#include "symbols/dwarf/dwarf_types.h"

#include <dwarf.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "symbols/dwarf/dwarf_session.h"

namespace slalom {
namespace {

constexpr int kMostNested = 64;  // nested types; those of a damaged file may form a loop

bool is_record(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

// Users see an object of such a type as a whole, in C as in C++.
bool is_library_name(std::string_view name) {
  for (const std::string_view whole : {"sem_t", "mtx_t", "cnd_t", "once_flag", "FILE", "_IO_FILE"})
    if (name == whole) return true;
  return name.starts_with("pthread_") || name.starts_with("__pthread");
}

// Returns the namespaces and types around a type, from the outermost one: "std::chrono::".
std::string scope_of(Dwarf_Die* type) {
  Dwarf_Die* raw = nullptr;
  const int count = dwarf_getscopes_die(type, &raw);
  const DieScopes around(raw);
  std::string scope;
  for (int i = count - 1; i > 0; --i) {
    Dwarf_Die* die = raw + i;
    if (dwarf_tag(die) == DW_TAG_namespace || is_record(dwarf_tag(die))) scope += die_name(die) + "::";
  }
  return scope;
}

bool is_library_scope(std::string_view scope) {
  return scope.starts_with("std::") || scope.starts_with("__gnu_cxx::");
}

// A member or base of a record, with the offsets in bytes at which it begins and ends.
struct Extent {
  Dwarf_Die die{};
  uint64_t begin = 0, end = 0;
  bool is_bits = false;
};

bool has_parts(Dwarf_Die type, int depth = 0) {
  type = bare_type(type);
  if (!is_record(dwarf_tag(&type)) || depth > kMostNested) return true;
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return false;
  do {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_member && dwarf_hasattr(&child, DW_AT_declaration) == 0) return true;
    if (tag != DW_TAG_inheritance) continue;
    const std::optional<Dwarf_Die> base = type_of(&child);
    if (base && has_parts(*base, depth + 1)) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

std::optional<Extent> extent_of(Dwarf_Die* member, bool in_union) {
  const int tag = dwarf_tag(member);
  if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return std::nullopt;
  if (dwarf_hasattr(member, DW_AT_declaration) != 0) return std::nullopt;  // it is static
  Extent extent{*member};
  const std::optional<uint64_t> bits = die_number(member, DW_AT_bit_size);
  if (const std::optional<uint64_t> first = die_number(member, DW_AT_data_bit_offset); first && bits) {
    extent.begin = *first / 8;
    extent.end = (*first + *bits + 7) / 8;
    extent.is_bits = true;
    return extent;
  }
  const std::optional<uint64_t> at = die_number(member, DW_AT_data_member_location);
  if (!at && (!in_union || dwarf_hasattr(member, DW_AT_data_member_location) != 0)) return std::nullopt;
  const std::optional<Dwarf_Die> type = type_of(member);
  if (!type || !has_parts(*type)) return std::nullopt;
  extent.is_bits = bits.has_value();
  extent.begin = at.value_or(0);
  extent.end = extent.begin + type_size(*type).value_or(1);
  return extent;
}

// Returns the only member at the offset. Empty if there are several, as in a union: nothing says which one
// the program means.
std::optional<Extent> only_extent(Dwarf_Die* record, uint64_t offset) {
  std::optional<Extent> found;
  Dwarf_Die child;
  if (dwarf_child(record, &child) != 0) return std::nullopt;
  do {
    const std::optional<Extent> extent = extent_of(&child, dwarf_tag(record) == DW_TAG_union_type);
    if (!extent || offset < extent->begin || offset >= extent->end) continue;
    if (found) return std::nullopt;
    found = extent;
  } while (dwarf_siblingof(&child, &child) == 0);
  return found;
}

// Returns the number of elements in each dimension; 0 if unknown.
std::vector<uint64_t> dimensions(Dwarf_Die* array) {
  std::vector<uint64_t> all;
  Dwarf_Die child;
  if (dwarf_child(array, &child) != 0) return all;
  do {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) continue;
    const std::optional<uint64_t> count = die_number(&child, DW_AT_count);
    const std::optional<uint64_t> last = die_number(&child, DW_AT_upper_bound);
    all.push_back(count ? *count : last ? *last + 1 : 0);
  } while (dwarf_siblingof(&child, &child) == 0);
  return all;
}

std::string rest(uint64_t offset) {
  return offset == 0 ? "" : fmt::format("+{}", offset);
}

std::string element_of(Dwarf_Die array, uint64_t offset, int depth);
std::string member_of(Dwarf_Die record, uint64_t offset, int depth);

std::string nested_part(Dwarf_Die type, uint64_t offset, int depth) {
  if (depth > kMostNested) return rest(offset);
  // Library types are recognised by their typedefs, because the types behind them have no names.
  for (int i = 0; i < kMostNested && dwarf_tag(&type) == DW_TAG_typedef; ++i) {
    if (is_library_name(die_name(&type))) return {};
    const std::optional<Dwarf_Die> next = type_of(&type);
    if (!next) return rest(offset);
    type = *next;
  }
  type = bare_type(type);
  const int tag = dwarf_tag(&type);
  if (tag == DW_TAG_array_type) return element_of(type, offset, depth);
  if (is_record(tag)) return member_of(type, offset, depth);
  return rest(offset);
}

std::string element_of(Dwarf_Die array, uint64_t offset, int depth) {
  const std::optional<Dwarf_Die> element = type_of(&array);
  const std::optional<uint64_t> size = element ? type_size(*element) : std::nullopt;
  const std::vector<uint64_t> counts = dimensions(&array);
  if (!size || *size == 0 || counts.empty() || std::find(counts.begin() + 1, counts.end(), 0) != counts.end())
    return rest(offset);
  std::string part;
  for (size_t i = 0; i < counts.size(); ++i) {
    uint64_t stride = *size;
    for (size_t k = i + 1; k < counts.size(); ++k) stride *= counts[k];
    if (stride == 0 || (counts[i] != 0 && offset / stride >= counts[i])) return rest(offset);
    part += fmt::format("[{}]", offset / stride);
    offset %= stride;
  }
  return part + nested_part(*element, offset, depth + 1);
}

// Omits members of the C++ library, such as "._M_elems", which users do not know.
std::string member_of(Dwarf_Die record, uint64_t offset, int depth) {
  const std::string name = die_name(&record);
  if (is_library_name(name)) return {};
  bool is_array = false;
  if (is_library_scope(scope_of(&record))) {
    is_array = name.starts_with("array<");
    if (!is_array && !name.starts_with("pair<")) return {};
  }
  std::optional<Extent> extent = only_extent(&record, offset);
  if (!extent) return rest(offset);
  const std::optional<Dwarf_Die> type = type_of(&extent->die);
  std::string member = die_name(&extent->die);
  if (member.starts_with("_vptr")) member = "vptr";
  // The member for a variable that a lambda captures has "__" before the variable's name.
  if ((name.empty() || name.starts_with("<lambda")) && member.starts_with("__")) member.erase(0, 2);
  const bool silent = is_array || dwarf_tag(&extent->die) == DW_TAG_inheritance || member.empty();
  const std::string words = silent ? "" : "." + member;
  if (!type || extent->is_bits) return words;
  const std::string part = nested_part(*type, offset - extent->begin, depth + 1);
  // A member without a name cannot anchor an offset, so the offset counts from the beginning of the record.
  if (silent && part.starts_with('+')) return rest(offset);
  if (silent && part.empty() && member.empty() && !is_array) {
    Dwarf_Die bare = bare_type(*type);
    const std::string inner = scope_of(&bare);
    return is_record(dwarf_tag(&bare)) && !is_library_scope(inner) ? rest(offset) : "";
  }
  return words + part;
}

}  // namespace

std::optional<Dwarf_Die> type_of(Dwarf_Die* entry) {
  Dwarf_Attribute attribute;
  Dwarf_Die type;
  if (dwarf_formref_die(dwarf_attr_integrate(entry, DW_AT_type, &attribute), &type) == nullptr)
    return std::nullopt;
  return type;
}

Dwarf_Die bare_type(Dwarf_Die type) {
  for (int i = 0; i < kMostNested; ++i) {
    switch (dwarf_tag(&type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type: {
        const std::optional<Dwarf_Die> next = type_of(&type);
        if (!next) return type;
        type = *next;
        break;
      }
      default:
        return type;
    }
  }
  return type;
}

std::optional<uint64_t> type_size(Dwarf_Die type) {
  Dwarf_Word size = 0;
  if (dwarf_aggregate_size(&type, &size) != 0) return std::nullopt;
  return size;
}

bool is_library_type(Dwarf_Die type) {
  for (int i = 0; i < kMostNested; ++i) {
    if (is_library_name(die_name(&type)) || is_library_scope(scope_of(&type))) return true;
    const int tag = dwarf_tag(&type);
    const bool stands_for_another =
        tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type;
    const std::optional<Dwarf_Die> next = stands_for_another ? type_of(&type) : std::nullopt;
    if (!next) return false;
    type = *next;
  }
  return false;
}

std::string part_of(Dwarf_Die type, uint64_t offset) {
  return nested_part(type, offset, 0);
}

std::optional<Dwarf_Die> member_named(Dwarf_Die type, const std::string& name, int depth) {
  Dwarf_Die record = bare_type(type);
  Dwarf_Die child;
  if (depth > kMostNested || !is_record(dwarf_tag(&record)) || dwarf_child(&record, &child) != 0)
    return std::nullopt;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
    if (tag == DW_TAG_member && die_name(&child) == name) return child;
    if (tag == DW_TAG_member && dwarf_diename(&child) != nullptr) continue;
    const std::optional<Dwarf_Die> inner = type_of(&child);
    if (inner)
      if (const std::optional<Dwarf_Die> found = member_named(*inner, name, depth + 1)) return found;
  } while (dwarf_siblingof(&child, &child) == 0);
  return std::nullopt;
}

}  // namespace slalom
