// CodePart: a part of a target's code, as users name it: "module:abba", "function:pipe_read" or
// "function:pipe_*". Scopes are lists of them. The target decides what is a module or a function's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace slalom {

struct CodePart {
  bool is_module = false;
  std::string name;  // a function's may end with a star

  static std::optional<CodePart> parse(std::string_view text);
  // Whether a function of this name belongs to the part. A module's functions do not: compare its name.
  bool matches_function(std::string_view function) const;
};

}  // namespace slalom
