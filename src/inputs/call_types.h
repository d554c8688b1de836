// The types of numbers in a list of calls: u8, i32, u16be and so on.
#pragma once

#include <cstdint>
#include <string_view>

namespace slalom {

struct FieldType {
  std::string_view name;
  uint8_t size;
  bool is_signed = false;
  bool big_endian = false;
};
inline constexpr FieldType kTypes[] = {{"u8", 1},
                                       {"u16", 2},
                                       {"u32", 4},
                                       {"u64", 8},
                                       {"i8", 1, true},
                                       {"i16", 2, true},
                                       {"i32", 4, true},
                                       {"i64", 8, true},
                                       {"ptr", 8},
                                       {"u16be", 2, false, true},
                                       {"u32be", 4, false, true},
                                       {"u64be", 8, false, true}};

inline const FieldType* find_type(std::string_view name) {
  for (const FieldType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace slalom
