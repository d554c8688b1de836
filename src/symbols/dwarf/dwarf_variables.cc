// DebugInfo's variables and types.
#include <dwarf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/dwarf_session.h"
#include "symbols/dwarf/dwarf_types.h"

namespace slalom {

struct DebugTypeAccess {
  static DebugType pack(const Dwarf_Die& die) {
    static_assert(sizeof(Dwarf_Die) == sizeof(DebugType::die_));
    DebugType type;
    std::memcpy(type.die_.data(), &die, sizeof die);
    return type;
  }
  static Dwarf_Die unpack(const DebugType& type) {
    Dwarf_Die die;
    std::memcpy(&die, type.die_.data(), sizeof die);
    return die;
  }
};

namespace {

bool is_function(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram || tag == DW_TAG_entry_point;
}

bool is_variable(int tag) {
  return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

template <typename Visit>
void for_children(Dwarf_Die* parent, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0) return;
  do {
    visit(child);
  } while (dwarf_siblingof(&child, &child) == 0);
}

// Returns the variable's address in the file; empty if it has no single address.
std::optional<uint64_t> static_address(Dwarf_Die* variable) {
  Dwarf_Attribute attribute;
  Dwarf_Op* expression = nullptr;
  size_t length = 0;
  if (dwarf_attr(variable, DW_AT_location, &attribute) == nullptr ||
      dwarf_getlocation(&attribute, &expression, &length) != 0 || length != 1)
    return std::nullopt;
  if (expression->atom == DW_OP_addr) return expression->number;
  Dwarf_Attribute of_operation;
  Dwarf_Addr address = 0;
  if (expression->atom == DW_OP_addrx && dwarf_getlocation_attr(&attribute, expression, &of_operation) == 0 &&
      dwarf_formaddr(&of_operation, &address) == 0)
    return address;
  return std::nullopt;
}

void collect_variables(Dwarf_Die* parent, uint64_t bias, bool inside_functions,
                       std::vector<DwarfSession::Variable>& found) {
  for_children(parent, [&](Dwarf_Die& die) {
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_namespace || (inside_functions && (is_function(tag) || tag == DW_TAG_lexical_block)))
      collect_variables(&die, bias, inside_functions, found);
    if (tag != DW_TAG_variable) return;
    if (const std::optional<uint64_t> address = static_address(&die)) found.push_back({*address + bias, die});
  });
}

std::vector<DwarfSession::Variable> all_variables(const DwarfSession& session, bool inside_functions) {
  std::vector<DwarfSession::Variable> found;
  Dwarf_Addr bias = 0;
  for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(session.module, unit, &bias)) != nullptr;)
    collect_variables(unit, bias, inside_functions, found);
  std::ranges::stable_sort(found, {}, &DwarfSession::Variable::address);
  return found;
}

std::string variable_name_of(Dwarf_Die* variable) {
  Dwarf_Attribute attribute;
  const char* name = dwarf_formstring(dwarf_attr_integrate(variable, DW_AT_name, &attribute));
  return name != nullptr ? name : "";
}

// Returns the part `offset` bytes into the variable; empty if the offset is behind its end.
std::optional<VariablePart> part_of_variable(Dwarf_Die* variable, uint64_t offset) {
  const std::optional<Dwarf_Die> type = type_of(variable);
  const std::optional<uint64_t> size = type ? type_size(*type) : std::nullopt;
  std::string name = variable_name_of(variable);
  if (!size || offset >= *size || name.empty()) return std::nullopt;
  return VariablePart{std::move(name), part_of(*type, offset), {}};
}

std::optional<VariablePart> find_in(const std::vector<DwarfSession::Variable>& variables, uint64_t address) {
  auto at = std::ranges::upper_bound(variables, address, {}, &DwarfSession::Variable::address);
  if (at == variables.begin()) return std::nullopt;
  const uint64_t begin = std::prev(at)->address;
  while (at != variables.begin() && std::prev(at)->address == begin) {
    Dwarf_Die die = (--at)->die;
    if (std::optional<VariablePart> part = part_of_variable(&die, address - begin)) return part;
  }
  return std::nullopt;
}

// The entries around an address, from the innermost one outwards, through inlined functions.
struct ScopeList {
  std::vector<Dwarf_Die> dies;
  Dwarf_Die unit{};
  uint64_t bias = 0;
};

std::optional<ScopeList> scopes_at(const DwarfSession* session, uint64_t pc) {
  if (session == nullptr) return std::nullopt;
  ScopeList list;
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dwfl_module_addrdie(session->module, pc, &bias);
  if (unit == nullptr) return std::nullopt;
  list.unit = *unit;
  list.bias = bias;
  Dwarf_Die* raw = nullptr;
  if (dwarf_getscopes(unit, pc - bias, &raw) <= 0) return std::nullopt;
  const DieScopes innermost(raw);
  raw = nullptr;
  const int count = dwarf_getscopes_die(innermost.get(), &raw);
  const DieScopes around(raw);
  for (int i = 0; i < count; ++i) list.dies.push_back(raw[i]);
  return list;
}

// Returns the DWARF expression of an attribute at `pc`; empty if it has none there.
std::vector<Dwarf_Op> operations(Dwarf_Die* die, unsigned attribute_name, uint64_t pc) {
  Dwarf_Attribute attribute;
  Dwarf_Op* expression = nullptr;
  size_t length = 0;
  if (dwarf_attr(die, attribute_name, &attribute) == nullptr ||
      dwarf_getlocation_addr(&attribute, pc, &expression, &length, 1) != 1)
    return {};
  return {expression, expression + length};
}

// Returns the expression if it is a single operation.
std::optional<Dwarf_Op> only_operation(Dwarf_Die* die, unsigned attribute_name, uint64_t pc) {
  const std::vector<Dwarf_Op> all = operations(die, attribute_name, pc);
  return all.size() == 1 ? std::optional(all.front()) : std::nullopt;
}

std::optional<uint64_t> frame_base(const ScopeList& scopes, const StackFrame& frame) {
  for (Dwarf_Die die : scopes.dies) {
    if (dwarf_tag(&die) != DW_TAG_subprogram) continue;
    const std::optional<Dwarf_Op> base = only_operation(&die, DW_AT_frame_base, frame.pc - scopes.bias);
    if (!base) return std::nullopt;
    if (base->atom == DW_OP_call_frame_cfa) return frame.cfa;
    if (base->atom == DW_OP_reg6) return frame.registers[6];  // clang's form
    if (base->atom == DW_OP_breg6 && frame.registers[6]) return *frame.registers[6] + base->number;
    return std::nullopt;
  }
  return std::nullopt;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string function_around(const ScopeList& scopes, size_t from) {
  for (size_t i = from; i < scopes.dies.size(); ++i) {
    Dwarf_Die die = scopes.dies[i];
    if (is_function(dwarf_tag(&die))) return variable_name_of(&die);
  }
  return {};
}

std::vector<std::string> split_name(std::string_view name) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find("::", at), name.size());
    if (end > at) words.emplace_back(name.substr(at, end - at));
    at = end + 2;
  }
  return words;
}

bool is_type(int tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_typedef || tag == DW_TAG_enumeration_type;
}

// Adds all types with that name below an entry. `around` holds the names between the root and `parent`.
void collect_types(Dwarf_Die* parent, const std::vector<std::string>& name, std::vector<std::string>& around,
                   std::vector<Dwarf_Die>& found) {
  for_children(parent, [&](Dwarf_Die& die) {
    const int tag = dwarf_tag(&die);
    if (is_type(tag) && die_name(&die) == name.back() && dwarf_hasattr(&die, DW_AT_declaration) == 0 &&
        around.size() + 1 >= name.size() &&
        std::equal(name.begin(), name.end() - 1, around.end() - static_cast<ptrdiff_t>(name.size() - 1)))
      found.push_back(die);
    if (tag != DW_TAG_namespace && !is_type(tag) && !is_function(tag) && tag != DW_TAG_lexical_block) return;
    const bool named = tag == DW_TAG_namespace || is_type(tag);
    if (named) around.push_back(die_name(&die));
    collect_types(&die, name, around, found);
    if (named) around.pop_back();
  });
}

bool is_pointer(int tag) {
  return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

// Returns the type of a pointer's target or an array's elements; empty for other types.
std::optional<Dwarf_Die> target_of(Dwarf_Die type) {
  Dwarf_Die bare = bare_type(type);
  const int tag = dwarf_tag(&bare);
  if (!is_pointer(tag) && tag != DW_TAG_array_type) return std::nullopt;
  return type_of(&bare);
}

// Returns the type that a reference refers to; any other type as it is.
std::optional<Dwarf_Die> without_reference(std::optional<Dwarf_Die> type) {
  if (!type) return type;
  Dwarf_Die bare = bare_type(*type);
  const int tag = dwarf_tag(&bare);
  return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ? type_of(&bare) : type;
}

// Returns the type of the variable that has this name in these scopes.
std::optional<Dwarf_Die> type_of_variable(const ScopeList& scopes, const std::string& name) {
  for (const Dwarf_Die& scope : scopes.dies) {
    std::optional<Dwarf_Die> found, self;
    Dwarf_Die parent = scope;
    for_children(&parent, [&](Dwarf_Die& die) {
      if (!is_variable(dwarf_tag(&die))) return;
      const std::string known = variable_name_of(&die);
      if (known == name && !found) found = type_of(&die);
      if (known == "this") self = type_of(&die);
    });
    if (found) return without_reference(found);
    const std::optional<Dwarf_Die> object = self ? target_of(*self) : std::nullopt;
    if (!object) continue;
    // The second name is that of a variable that a lambda captures.
    for (const std::string& called : {name, "__" + name})
      if (std::optional<Dwarf_Die> member = member_named(*object, called))
        return without_reference(type_of(&*member));
  }
  return std::nullopt;
}

// Makes one step through an expression: `type` is the type of the part before ".", "->" or "[".
std::optional<Dwarf_Die> step_into(Dwarf_Die type, const std::string& member) {
  Dwarf_Die bare = bare_type(type);
  if (is_pointer(dwarf_tag(&bare))) {
    const std::optional<Dwarf_Die> target = type_of(&bare);
    if (!target) return std::nullopt;
    type = *target;
  }
  std::optional<Dwarf_Die> found = member_named(type, member);
  return found ? without_reference(type_of(&*found)) : std::nullopt;
}

}  // namespace

std::optional<VariablePart> DebugInfo::variable(uint64_t address) const {
  for (const auto& session : state_->sessions) {
    if (!session->ranges.empty() || !session->holds(address)) continue;
    if (!session->globals) session->globals = all_variables(*session, false);
    if (std::optional<VariablePart> part = find_in(*session->globals, address)) return part;
    if (!session->statics) session->statics = all_variables(*session, true);
    return find_in(*session->statics, address);
  }
  return std::nullopt;
}

std::optional<VariablePart> DebugInfo::local(const StackFrame& frame, uint64_t address) const {
  const std::optional<ScopeList> scopes = scopes_at(state_->holding(frame.pc), frame.pc);
  const std::optional<uint64_t> base = scopes ? frame_base(*scopes, frame) : std::nullopt;
  if (!base) return std::nullopt;
  std::optional<VariablePart> found;
  bool several = false;
  for (size_t i = 0; i < scopes->dies.size(); ++i) {
    Dwarf_Die scope = scopes->dies[i];
    const int tag = dwarf_tag(&scope);
    if (!is_function(tag) && tag != DW_TAG_lexical_block) continue;
    for_children(&scope, [&](Dwarf_Die& die) {
      if (!is_variable(dwarf_tag(&die))) return;
      const std::optional<Dwarf_Op> at = only_operation(&die, DW_AT_location, frame.pc - scopes->bias);
      if (!at || at->atom != DW_OP_fbreg || *base + at->number > address) return;
      std::optional<VariablePart> part = part_of_variable(&die, address - *base - at->number);
      if (!part) return;
      part->function = function_around(*scopes, i);
      several = several || found;
      found = std::move(part);
    });
    if (tag == DW_TAG_subprogram) break;
  }
  return several ? std::nullopt : found;
}

std::vector<PointerVariable> DebugInfo::pointers(const StackFrame& frame) const {
  std::vector<PointerVariable> all;
  const std::optional<ScopeList> scopes = scopes_at(state_->holding(frame.pc), frame.pc);
  if (!scopes) return all;
  const std::optional<uint64_t> base = frame_base(*scopes, frame);
  const auto add = [&](Dwarf_Die& die) {
    const std::optional<Dwarf_Die> type = is_variable(dwarf_tag(&die)) ? type_of(&die) : std::nullopt;
    Dwarf_Die pointer = type ? bare_type(*type) : Dwarf_Die{};
    const std::optional<Dwarf_Die> target =
        type && is_pointer(dwarf_tag(&pointer)) ? type_of(&pointer) : std::nullopt;
    if (!target || DebugInfo::name_of(DebugTypeAccess::pack(*target)).empty()) return;
    const std::vector<Dwarf_Op> at = operations(&die, DW_AT_location, frame.pc - scopes->bias);
    // The expression gives the pointer's address or its value. A value is a register, perhaps with an offset.
    const bool is_value = at.size() == 2 && at[1].atom == DW_OP_stack_value;
    if (at.size() != 1 && !is_value) return;
    PointerVariable found{variable_name_of(&die), DebugTypeAccess::pack(*target)};
    const auto kept = [&](unsigned number) {
      return number < frame.registers.size() ? frame.registers[number] : std::nullopt;
    };
    const Dwarf_Op& first = at.front();
    if (first.atom == DW_OP_fbreg && base) {
      found.number = *base + first.number;
      found.in_memory = !is_value;
    } else if (first.atom >= DW_OP_reg0 && first.atom <= DW_OP_reg31 && kept(first.atom - DW_OP_reg0)) {
      found.number = *kept(first.atom - DW_OP_reg0);
    } else if (first.atom >= DW_OP_breg0 && first.atom <= DW_OP_breg31 && kept(first.atom - DW_OP_breg0)) {
      found.number = *kept(first.atom - DW_OP_breg0) + first.number;
      found.in_memory = !is_value;
    } else {
      return;
    }
    all.push_back(std::move(found));
  };
  for (Dwarf_Die scope : scopes->dies) {
    const int tag = dwarf_tag(&scope);
    if (is_function(tag) || tag == DW_TAG_lexical_block) for_children(&scope, add);
    if (tag == DW_TAG_subprogram) break;
  }
  return all;
}

std::optional<DebugType> DebugInfo::type_named(uint64_t pc, const std::string& name) const {
  std::optional<ScopeList> scopes = scopes_at(state_->holding(pc), pc);
  const std::vector<std::string> words = split_name(name);
  if (!scopes || words.empty()) return std::nullopt;
  for (Dwarf_Die scope : scopes->dies) {
    std::optional<Dwarf_Die> parameter;
    for_children(&scope, [&](Dwarf_Die& die) {
      if (dwarf_tag(&die) == DW_TAG_template_type_parameter && die_name(&die) == name)
        parameter = type_of(&die);
    });
    if (parameter) return DebugTypeAccess::pack(*parameter);
  }
  std::vector<Dwarf_Die> found;
  std::vector<std::string> around;
  collect_types(&scopes->unit, words, around, found);
  const auto differs = [&](const Dwarf_Die& type) {
    Dwarf_Die first = bare_type(found.front()), other = bare_type(type);
    return dwarf_dieoffset(&first) != dwarf_dieoffset(&other);
  };
  if (found.empty() || std::ranges::any_of(found, differs)) return std::nullopt;
  return DebugTypeAccess::pack(found.front());
}

std::optional<DebugType> DebugInfo::pointee(uint64_t pc, const std::string& expression) const {
  const std::optional<ScopeList> scopes = scopes_at(state_->holding(pc), pc);
  if (!scopes) return std::nullopt;
  const std::string_view text = expression;
  size_t at = 0;
  const auto word = [&] {
    const size_t begin = at;
    while (at < text.size() && is_word(text[at])) ++at;
    return std::string(text.substr(begin, at - begin));
  };
  std::optional<Dwarf_Die> type = type_of_variable(*scopes, word());
  while (type && at < text.size()) {
    if (text[at] == '[') {
      int depth = 0;
      for (; at < text.size(); ++at) {
        depth += text[at] == '[';
        depth -= text[at] == ']';
        if (depth == 0) break;
      }
      if (at++ >= text.size()) return std::nullopt;
      type = target_of(*type);
    } else if (text[at] == '.' || text.substr(at, 2) == "->") {
      at += text[at] == '.' ? 1 : 2;
      type = step_into(*type, word());
    } else {
      return std::nullopt;
    }
  }
  if (!type) return std::nullopt;
  Dwarf_Die bare = bare_type(*type);
  if (dwarf_tag(&bare) != DW_TAG_pointer_type) return std::nullopt;
  const std::optional<Dwarf_Die> target = type_of(&bare);
  return target ? std::optional(DebugTypeAccess::pack(*target)) : std::nullopt;
}

std::optional<uint64_t> DebugInfo::size_of(const DebugType& type) {
  const std::optional<uint64_t> size = type_size(DebugTypeAccess::unpack(type));
  return size && *size > 0 ? size : std::nullopt;
}

std::string DebugInfo::name_of(const DebugType& type) {
  Dwarf_Die die = DebugTypeAccess::unpack(type), bare = bare_type(die);
  if (!is_type(dwarf_tag(&bare))) return {};
  // A typedef gives a struct without a name its name.
  std::string name = die_name(&bare);
  return name.empty() ? die_name(&die) : name;
}

bool DebugInfo::is_library(const DebugType& type) {
  return is_library_type(DebugTypeAccess::unpack(type));
}

std::string DebugInfo::part(const DebugType& type, uint64_t offset) {
  return part_of(DebugTypeAccess::unpack(type), offset);
}

}  // namespace slalom
