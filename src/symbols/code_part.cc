#include "symbols/code_part.h"

namespace slalom {

std::optional<CodePart> CodePart::parse(std::string_view text) {
  constexpr std::string_view kModule = "module:", kFunction = "function:";
  const bool is_module = text.starts_with(kModule);
  if (!is_module && !text.starts_with(kFunction)) return std::nullopt;
  const std::string_view name = text.substr((is_module ? kModule : kFunction).size());
  const size_t star = name.find('*');
  const bool star_is_allowed = star == std::string_view::npos || (!is_module && star == name.size() - 1);
  if (name.empty() || name == "*" || !star_is_allowed) return std::nullopt;
  return CodePart{is_module, std::string(name)};
}

bool CodePart::matches_function(std::string_view function) const {
  if (is_module) return false;
  if (name.ends_with('*')) return function.starts_with(std::string_view(name).substr(0, name.size() - 1));
  return function == name;
}

}  // namespace slalom
