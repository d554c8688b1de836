#include "inputs/struct_types.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "inputs/system_calls.h"

namespace slalom {
namespace {

struct Row {
  std::string_view name;
  uint32_t size;
  std::string_view fields;  // "name:offset:kind ..."
};
constexpr Row kStructs[] = {
#include "inputs/tables/structs.inc"
};

uint32_t number(std::string_view digits) {
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

StructField::Kind kind_of(char letter) {
  switch (letter) {
    case 'i':
      return StructField::Kind::Signed;
    case 'b':
      return StructField::Kind::BigEndian;
    case 'p':
      return StructField::Kind::Pointer;
    case 'c':
      return StructField::Kind::Text;
    case 's':
      return StructField::Kind::Bytes;
    default:
      return StructField::Kind::Unsigned;
  }
}

StructField read_field(std::string_view text) {
  const size_t kind = text.rfind(':');
  const size_t offset = text.rfind(':', kind - 1);
  return {.name = text.substr(0, offset),
          .offset = number(text.substr(offset + 1, kind - offset - 1)),
          .kind = kind_of(text[kind + 1]),
          .size = number(text.substr(kind + 2))};
}

}  // namespace

std::optional<StructType> StructType::find(std::string_view name) {
  const Row* row = std::ranges::lower_bound(kStructs, name, {}, &Row::name);
  if (row == std::end(kStructs) || row->name != name) return std::nullopt;
  StructType type;
  type.name_ = row->name;
  type.size_ = row->size;
  for (std::string_view rest = row->fields; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    type.fields_.push_back(read_field(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return type;
}

const StructField* StructType::field(std::string_view name) const {
  const auto exact = std::ranges::find(fields_, name, &StructField::name);
  if (exact != fields_.end()) return &*exact;
  const std::string ending = "." + std::string(name);
  const StructField* found = nullptr;
  for (const StructField& field : fields_) {
    if (!field.name.ends_with(ending)) continue;
    if (found != nullptr && (found->offset != field.offset || found->size != field.size)) return nullptr;
    found = &field;
  }
  return found;
}

const StructField* StructType::number_in(const StructField& field) const {
  const std::string beginning = std::string(field.name) + ".";
  for (const StructField& part : fields_)
    if (part.name.starts_with(beginning) && part.kind <= StructField::Kind::Pointer)
      return part.offset == field.offset ? &part : nullptr;
  return nullptr;
}

std::string similar_structs(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : kStructs) names.push_back(row.name);
  return similar_names(name, names);
}

std::string similar_fields(const StructType& type, std::string_view name) {
  std::vector<std::string_view> names;
  for (const StructField& field : type.fields()) {
    names.push_back(field.name);
    if (const size_t dot = field.name.rfind('.'); dot != std::string_view::npos)
      names.push_back(field.name.substr(dot + 1));
  }
  return similar_names(name, names);
}

}  // namespace slalom
