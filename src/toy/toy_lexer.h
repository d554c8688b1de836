// The tokens of the toy language. Statements end at a newline or `;`. Inside parentheses and brackets, a
// newline is only a blank, so that long expressions can be broken. Not for reading files: see toy_file.h.
//
// inputs/call_lexer.h is another lexer, since its language is C's: escapes, octal numbers, characters,
// unsigned values. The classes of characters are shared (base/text/characters.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slalom {

// A problem in a piece of toy code, and its line in that piece, counted from 1.
struct ToyDiagnostic {
  int line = 0;
  std::string message;
};

struct ToyToken {
  enum class Kind : uint8_t { Name, Number, Text, Symbol, Separator, End };
  Kind kind = Kind::End;
  std::string_view text;  // of a Text: without the quotes
  int64_t number = 0;
  int line = 0;
  size_t offset = 0;  // of the first character in the code
};

// The tokens point into `code`, and end with a token of kind End.
struct ToyTokens {
  std::vector<ToyToken> tokens;
  std::optional<ToyDiagnostic> problem;
};
ToyTokens toy_tokens(std::string_view code);

bool is_toy_keyword(std::string_view word);
bool is_toy_identifier(std::string_view word);  // an identifier that is no keyword

}  // namespace slalom
