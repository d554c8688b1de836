// The tokens of a list of calls: names, numbers, texts and signs, each with its place.
//
// A line ends a statement, except within brackets. '#' begins a comment. Numbers and texts are written as in
// C, which toy programs do not have (toy/toy_lexer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

struct CallToken {
  enum class Kind : uint8_t { Name, Number, Text, Sign, EndOfLine, End };
  Kind kind = Kind::End;
  std::string text;     // a name, a sign, or the value of a text
  uint64_t number = 0;  // the value of a number
  int line = 0;         // in the file
  int column = 0;       // from 1
  size_t begin = 0;     // in the text
  size_t end = 0;
};

// The tokens end with a token of kind End.
Result<std::vector<CallToken>> read_call_tokens(std::string_view text, const std::string& origin,
                                                int first_line);

}  // namespace slalom
