// The types of debug information, as libdw's entries: what lies at an offset in one, in the words of its
// source. Only for dwarf_variables.cc.
//
// Types of the language's and the threading library are not looked into: a std::mutex is one object for its
// user.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>

namespace slalom {

// The type of a variable, a member, an array's element or what a pointer points to; none of void.
std::optional<Dwarf_Die> type_of(Dwarf_Die* entry);
// Without typedefs and qualifiers.
Dwarf_Die bare_type(Dwarf_Die type);
std::optional<uint64_t> type_size(Dwarf_Die type);
// One that is not looked into, for itself or what it is a typedef of.
bool is_library_type(Dwarf_Die type);
// ".slots[3].lock"; ends with "+5" where the type says no more.
std::string part_of(Dwarf_Die type, uint64_t offset);
// A member of a struct, of a struct without a name in it, or of a base.
std::optional<Dwarf_Die> member_named(Dwarf_Die type, const std::string& name, int depth = 0);

}  // namespace slalom
