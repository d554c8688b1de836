// The types of debug information, as libdw's entries. Names the part at an offset in a type as the source
// does. Only for dwarf_variables.cc.
//
// Does not look into types of the language's and the threading library: users see a std::mutex as one object.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>

namespace slalom {

// Returns the type of a variable or member, of an array's elements, or of a pointer's target; empty for void.
std::optional<Dwarf_Die> type_of(Dwarf_Die* entry);
// Returns the type without typedefs and qualifiers.
Dwarf_Die bare_type(Dwarf_Die type);
std::optional<uint64_t> type_size(Dwarf_Die type);
// Returns whether the type, or a type that it is a typedef of, belongs to such a library.
bool is_library_type(Dwarf_Die type);
// Returns ".slots[3].lock"; ends with "+5" if the type has no name for the rest.
std::string part_of(Dwarf_Die type, uint64_t offset);
// Returns a member of a struct, of an unnamed struct in it, or of a base.
std::optional<Dwarf_Die> member_named(Dwarf_Die type, const std::string& name, int depth = 0);

}  // namespace slalom
