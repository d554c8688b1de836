#include "symbols/btf.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/little_endian.h"

namespace slalom {
namespace {

enum Kind : uint8_t {
  kVoid,
  kInt,
  kPointer,
  kArray,
  kStruct,
  kUnion,
  kEnum,
  kForward,
  kTypedef,
  kVolatile,
  kConst,
  kRestrict,
  kFunction,
  kPrototype,
  kVariable,
  kDataSection,
  kFloat,
  kDeclTag,
  kTypeTag,
  kEnum64,
  kKinds,
};

constexpr uint16_t kMagic = 0xeb9f;
constexpr uint64_t kHeaderSize = 24;
constexpr uint32_t kMaxTypes = 1 << 24;
constexpr int kMaxDepth = 32;                // of types within types
constexpr uint32_t kSearchBudget = 1 << 14;  // members examined for one step of a path
constexpr uint64_t kMaxSize = uint64_t{1} << 40;

// Returns the number of bytes that follow the three words of a type.
uint64_t details_size(uint8_t kind, uint64_t count) {
  switch (kind) {
    case kInt:
    case kVariable:
    case kDeclTag:
      return 4;
    case kArray:
      return 12;
    case kStruct:
    case kUnion:
    case kDataSection:
    case kEnum64:
      return 12 * count;
    case kEnum:
    case kPrototype:
      return 8 * count;
    default:
      return 0;
  }
}

bool is_modifier(uint8_t kind) {
  return kind == kTypedef || kind == kVolatile || kind == kConst || kind == kRestrict || kind == kTypeTag;
}

// Cuts the first step off a path: "a[1].b" becomes "a", and "[1].b" remains.
std::string_view next_step(std::string_view& path) {
  const size_t end = std::min(path.find_first_of(".[", 1), path.size());
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(end);
  return step;
}

}  // namespace

Result<Btf> Btf::parse(std::span<const uint8_t> section) {
  const auto malformed = [](std::string_view what) {
    return error("the kernel's type information (.BTF) is malformed: {}; was the image cut short?", what);
  };
  if (section.size() < kHeaderSize || get_le<uint16_t>(section, 0) != kMagic)
    return malformed("it does not begin as one");
  if (section[2] != 1)
    return error("the kernel's type information (.BTF) has version {}, slalom reads 1", section[2]);
  Btf btf;
  btf.bytes_.assign(section.begin(), section.end());
  const uint64_t header = btf.word(4);
  const uint64_t types = header + btf.word(8), types_size = btf.word(12);
  btf.strings_ = header + btf.word(16);
  btf.strings_size_ = btf.word(20);
  if (header < kHeaderSize || types > section.size() || section.size() - types < types_size ||
      btf.strings_ > section.size() || section.size() - btf.strings_ < btf.strings_size_)
    return malformed("a part lies outside");
  if (btf.strings_size_ == 0 || section[btf.strings_ + btf.strings_size_ - 1] != 0)
    return malformed("a name has no end");

  btf.types_.emplace_back();
  const uint64_t end = types + types_size;
  for (uint64_t at = types; at < end;) {
    if (end - at < 12 || btf.types_.size() >= kMaxTypes) return malformed("a type has no end");
    const uint32_t info = btf.word(at + 4);
    const Type type{.name = btf.word(at),
                    .kind = static_cast<uint8_t>(info >> 24 & 0x1f),
                    .flag = (info >> 31) != 0,
                    .count = static_cast<uint16_t>(info),
                    .size = btf.word(at + 8),
                    .details = at + 12};
    if (type.kind == kVoid || type.kind >= kKinds)
      return error("the kernel's type information (.BTF) has a kind of type ({}) that slalom does not know",
                   type.kind);
    if (type.name >= btf.strings_size_) return malformed("a name lies outside");
    const uint64_t details = details_size(type.kind, type.count);
    if (end - type.details < details) return malformed("a type has no end");
    at = type.details + details;
    const bool findable = type.kind == kStruct || type.kind == kUnion || type.kind == kTypedef ||
                          type.kind == kEnum || type.kind == kEnum64;
    if (findable && !btf.text(type.name).empty())
      btf.by_name_.push_back(static_cast<uint32_t>(btf.types_.size()));
    btf.types_.push_back(type);
  }
  std::ranges::stable_sort(btf.by_name_, {}, [&](uint32_t id) { return btf.text(btf.types_[id].name); });
  return btf;
}

uint32_t Btf::word(uint64_t at) const {
  return get_le<uint32_t>(bytes_, at).value_or(0);
}

std::string_view Btf::text(uint32_t offset) const {
  if (offset >= strings_size_) return {};
  return reinterpret_cast<const char*>(bytes_.data()) + strings_ + offset;
}

const Btf::Type& Btf::type(uint32_t id) const {
  return types_[id < types_.size() ? id : 0];
}

uint32_t Btf::strip(uint32_t id) const {
  for (int depth = 0; is_modifier(type(id).kind); ++depth) {
    if (depth == kMaxDepth) return 0;
    id = type(id).size;
  }
  return id;
}

bool Btf::is_struct(uint32_t id) const {
  return type(id).kind == kStruct || type(id).kind == kUnion;
}

std::optional<uint64_t> Btf::size_of(uint32_t id, int depth) const {
  const Type& stripped = type(strip(id));
  switch (stripped.kind) {
    case kInt:
    case kStruct:
    case kUnion:
    case kEnum:
    case kEnum64:
    case kFloat:
      return stripped.size;
    case kPointer:
      return 8;
    case kArray: {
      if (depth == kMaxDepth) return std::nullopt;
      const std::optional<uint64_t> element = size_of(word(stripped.details), depth + 1);
      const uint64_t count = word(stripped.details + 8);
      if (!element || (count != 0 && *element > kMaxSize / count)) return std::nullopt;
      return *element * count;
    }
    default:
      return std::nullopt;
  }
}

Btf::Member Btf::member(const Type& owner, uint32_t i) const {
  const uint64_t at = owner.details + uint64_t{12} * i;
  const uint32_t place = word(at + 8);
  Member member{.name = text(word(at)), .type = word(at + 4), .bit_offset = place};
  if (owner.flag) {
    member.bit_size = place >> 24;
    member.bit_offset = place & 0xffffff;
  }
  return member;
}

Btf::Field Btf::field_of(const Member& member, uint64_t base_bits) const {
  const uint64_t bits = base_bits + member.bit_offset;
  Field field{.offset = bits / 8, .bit_size = member.bit_size, .type = member.type};
  if (member.bit_size != 0) {
    field.bit_shift = static_cast<uint32_t>(bits % 8);
    field.size = (field.bit_shift + member.bit_size + 7) / 8;
  } else {
    field.size = size_of(member.type).value_or(0);
  }
  return field;
}

std::optional<Btf::Field> Btf::find_member(uint32_t id, std::string_view name, uint64_t base_bits,
                                           uint32_t& budget, int depth) const {
  id = strip(id);
  if (!is_struct(id) || depth == kMaxDepth) return std::nullopt;
  const Type& owner = type(id);
  for (uint32_t i = 0; i < owner.count; ++i) {
    if (budget == 0) return std::nullopt;
    --budget;
    const Member candidate = member(owner, i);
    if (candidate.name == name) return field_of(candidate, base_bits);
    if (!candidate.name.empty()) continue;
    if (const auto inner =
            find_member(candidate.type, name, base_bits + candidate.bit_offset, budget, depth + 1))
      return inner;
  }
  return std::nullopt;
}

std::optional<Btf::Field> Btf::element(const Field& array, uint64_t index) const {
  const Type& stripped = type(strip(array.type));
  if (stripped.kind != kArray || index >= word(stripped.details + 8)) return std::nullopt;
  const uint32_t of = word(stripped.details);
  const std::optional<uint64_t> size = size_of(of);
  if (!size || *size > kMaxSize || index > kMaxSize) return std::nullopt;
  return Field{.offset = array.offset + index * *size, .size = *size, .type = of};
}

std::optional<Btf::Field> Btf::follow(uint32_t id, std::string_view path) const {
  Field here{.size = size_of(id).value_or(0), .type = id};
  while (!path.empty()) {
    const std::string_view step = next_step(path);
    std::optional<Field> next;
    if (step.starts_with('[') && step.ends_with(']')) {
      uint64_t index = 0;
      const auto [end, trouble] = std::from_chars(step.data() + 1, step.data() + step.size() - 1, index);
      if (trouble == std::errc{} && end == step.data() + step.size() - 1) next = element(here, index);
    } else if (step.size() > 1 && step.starts_with('.')) {
      uint32_t budget = kSearchBudget;
      next = find_member(here.type, step.substr(1), 0, budget);
      if (next) next->offset += here.offset;
    }
    if (!next || next->offset > kMaxSize) return std::nullopt;
    here = *next;
  }
  return here;
}

std::vector<uint32_t> Btf::named(std::string_view name) const {
  // Not equal_range: clang 14 does not compile its subrange.
  const auto name_of = [&](uint32_t id) { return text(types_[id].name); };
  return {std::ranges::lower_bound(by_name_, name, {}, name_of),
          std::ranges::upper_bound(by_name_, name, {}, name_of)};
}

std::optional<Btf::Field> Btf::field(std::string_view path) const {
  if (path.empty()) return std::nullopt;
  const std::string_view start = next_step(path);
  // Several files may each have a struct with that name. Use the first one that has the member.
  for (const uint32_t id : named(start))
    if (const auto found = follow(id, path)) return found;
  return std::nullopt;
}

std::optional<uint64_t> Btf::size_of(std::string_view name) const {
  for (const uint32_t id : named(name))
    if (const auto size = size_of(id)) return size;
  return std::nullopt;
}

std::optional<uint64_t> Btf::element_count(std::string_view path) const {
  const std::optional<Field> array = field(path);
  if (!array || type(strip(array->type)).kind != kArray) return std::nullopt;
  return word(type(strip(array->type)).details + 8);
}

std::optional<int64_t> Btf::enumerator(std::string_view name) const {
  for (const Type& candidate : types_) {
    if (candidate.kind != kEnum && candidate.kind != kEnum64) continue;
    const uint64_t step = candidate.kind == kEnum ? 8 : 12;
    for (uint64_t i = 0; i < candidate.count; ++i) {
      const uint64_t at = candidate.details + step * i;
      if (text(word(at)) != name) continue;
      const uint32_t low = word(at + 4);
      if (candidate.kind == kEnum64) return static_cast<int64_t>(low | uint64_t{word(at + 8)} << 32);
      return candidate.flag ? int64_t{static_cast<int32_t>(low)} : int64_t{low};
    }
  }
  return std::nullopt;
}

std::string_view Btf::struct_name(const Field& field) const {
  uint32_t id = strip(field.type);
  if (type(id).kind == kPointer) id = strip(type(id).size);
  return is_struct(id) || type(id).kind == kForward ? text(type(id).name) : std::string_view{};
}

std::string Btf::describe(std::string_view name, uint64_t offset) const {
  std::string path(name);
  const std::vector<uint32_t> candidates = named(name);
  uint32_t id = 0;
  for (const uint32_t candidate : candidates)
    if (id == 0 && is_struct(strip(candidate))) id = strip(candidate);
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const Type& here = type(id);
    if (is_struct(id)) {
      std::optional<Field> inside;
      for (uint32_t i = 0; i < here.count && !inside; ++i) {
        const Member candidate = member(here, i);
        const Field field = field_of(candidate, 0);
        if (offset < field.offset || offset - field.offset >= field.size) continue;
        inside = field;
        if (!candidate.name.empty()) path += fmt::format(".{}", candidate.name);
      }
      if (!inside) break;
      id = inside->bit_size != 0 ? 0 : strip(inside->type);
      offset -= inside->offset;
    } else if (here.kind == kArray) {
      const uint32_t of = word(here.details);
      const uint64_t size = size_of(of).value_or(0);
      if (size == 0) break;
      path += fmt::format("[{}]", offset / size);
      offset %= size;
      id = strip(of);
    } else {
      break;
    }
  }
  return offset == 0 ? path : fmt::format("{}+{:#x}", path, offset);
}

}  // namespace slalom
