// The syntax tree of a piece of toy code. toy_compiler.h compiles it to instructions. The parser does not
// resolve names, so it does not depend on a program's declarations. The grammar is in docs/toy-language.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toy/toy_lexer.h"

namespace slalom {

struct ToyExpr {
  enum class Kind : uint8_t { Number, Name, Index, Unary, Binary, Call };
  Kind kind = Kind::Number;
  int64_t number = 0;
  std::string name;           // the named, indexed or called thing; the operator of a Unary or Binary
  std::vector<ToyExpr> args;  // index, operands or arguments
  int line = 0;
};

struct ToyStmt {
  enum class Kind : uint8_t {
    Assign,  // args: target, value
    Call,    // args: the call
    Word,    // args: objects of `word`: lock m, wait c m, yield
    If,      // args: condition
    While,   // args: condition
    For,     // word: variable; args: first, end
    Label,   // word: the label
    Goto,    // word: the label
    Assert,  // args: condition; text: the message, or the condition as written
    Note,    // text
  };
  Kind kind = Kind::Word;
  std::string word;
  std::vector<ToyExpr> args;
  std::string text;
  std::vector<ToyStmt> body;
  std::vector<ToyStmt> otherwise;
  int line = 0;
};

struct ToySyntax {
  std::vector<ToyStmt> statements;
  std::optional<ToyDiagnostic> problem;
};
ToySyntax parse_toy_code(std::string_view code);

struct ToyExprSyntax {
  ToyExpr expr;
  std::optional<ToyDiagnostic> problem;
};
ToyExprSyntax parse_toy_expr(std::string_view code);

}  // namespace slalom
