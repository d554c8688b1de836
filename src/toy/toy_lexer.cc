#include "toy/toy_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text/characters.h"

namespace slalom {
namespace {

constexpr std::array<std::string_view, 41> kKeywords = {
    "alloc",    "arm",    "arrive",   "assert", "break",     "broadcast", "cancel", "cas",   "choose",
    "continue", "down",   "else",     "exit",   "fetch_add", "for",       "free",   "goto",  "id",
    "if",       "in",     "join",     "load",   "lock",      "mask",      "note",   "raise", "rdlock",
    "rdunlock", "signal", "spawn",    "store",  "trylock",   "unlock",    "unmask", "up",    "wait",
    "while",    "wrlock", "wrunlock", "xchg",   "yield",
};

constexpr std::array<std::string_view, 9> kLongSymbols = {"==", "!=", "<=", ">=", "&&",
                                                          "||", "<<", ">>", ".."};

class Lexer {
 public:
  explicit Lexer(std::string_view code) : code_(code) {}

  ToyTokens run() {
    while (at_ < code_.size() && !result_.problem) next();
    add(ToyToken::Kind::End, 0);
    return std::move(result_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < code_.size() ? code_[at_ + ahead] : '\0'; }

  void add(ToyToken::Kind kind, size_t length) {
    result_.tokens.push_back({kind, code_.substr(at_, length), 0, line_, at_});
    at_ += length;
  }

  void fail(std::string message) { result_.problem = ToyDiagnostic{line_, std::move(message)}; }

  void next() {
    const char c = peek();
    if (c == '\n' || c == ';') {
      if (depth_ == 0 || c == ';') {
        add(ToyToken::Kind::Separator, 1);
      } else {
        ++at_;
      }
      if (c == '\n') ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < code_.size() && peek() != '\n') ++at_;
    } else if (is_name_start(c)) {
      name();
    } else if (is_digit(c)) {
      number();
    } else if (c == '"') {
      text();
    } else {
      symbol(c);
    }
  }

  void name() {
    size_t length = 1;
    while (is_name_character(peek(length))) ++length;
    // `join worker#1` names one copy. Elsewhere, `#` starts a comment.
    const bool after_join = !result_.tokens.empty() && result_.tokens.back().text == "join";
    if (after_join && peek(length) == '#' && is_digit(peek(length + 1))) {
      ++length;
      while (is_digit(peek(length))) ++length;
    }
    add(ToyToken::Kind::Name, length);
  }

  void number() {
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    size_t length = hex ? 2 : 1;
    while (is_name_character(peek(length))) ++length;
    const std::string_view word = code_.substr(at_, length);
    int64_t value = 0;
    const char* first = word.data() + (hex ? 2 : 0);
    const auto [end, problem] = std::from_chars(first, word.data() + word.size(), value, hex ? 16 : 10);
    if (problem != std::errc() || end != word.data() + word.size())
      return fail(fmt::format("`{}` is not a 64-bit integer", word));
    add(ToyToken::Kind::Number, length);
    result_.tokens.back().number = value;
  }

  void text() {
    size_t length = 1;
    while (peek(length) != '"') {
      if (peek(length) == '\0' || peek(length) == '\n')
        return fail("the text that begins here has no closing quote on its line");
      ++length;
    }
    add(ToyToken::Kind::Text, length + 1);
    std::string_view& token = result_.tokens.back().text;
    token = token.substr(1, token.size() - 2);
  }

  void symbol(char c) {
    for (std::string_view symbol : kLongSymbols)
      if (code_.substr(at_).starts_with(symbol)) return add(ToyToken::Kind::Symbol, symbol.size());
    if (std::string_view("+-*/%&|^<>=!()[]{},:").find(c) == std::string_view::npos)
      return fail(fmt::format("the character `{}` has no meaning here", c));
    if (c == '(' || c == '[') ++depth_;
    if ((c == ')' || c == ']') && depth_ > 0) --depth_;
    add(ToyToken::Kind::Symbol, 1);
  }

  std::string_view code_;
  size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  ToyTokens result_;
};

}  // namespace

ToyTokens toy_tokens(std::string_view code) {
  return Lexer(code).run();
}

bool is_toy_keyword(std::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

bool is_toy_identifier(std::string_view word) {
  return !word.empty() && is_name_start(word[0]) &&
         std::all_of(word.begin(), word.end(), is_name_character) && !is_toy_keyword(word);
}

}  // namespace slalom
