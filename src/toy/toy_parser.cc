#include "toy/toy_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace slalom {
namespace {

using Kind = ToyToken::Kind;

// Returns the precedence of a binary operator; 0 if it is none.
int binding(std::string_view op) {
  static constexpr std::array<std::pair<std::string_view, int>, 18> kTable = {{
      {"||", 1},
      {"&&", 2},
      {"|", 3},
      {"^", 4},
      {"&", 5},
      {"==", 6},
      {"!=", 6},
      {"<", 7},
      {"<=", 7},
      {">", 7},
      {">=", 7},
      {"<<", 8},
      {">>", 8},
      {"+", 9},
      {"-", 9},
      {"*", 10},
      {"/", 10},
      {"%", 10},
  }};
  for (const auto& [text, strength] : kTable)
    if (text == op) return strength;
  return 0;
}
constexpr int kUnaryBinding = 11;

// Returns the number of objects after a statement word; -1 if it is no such word.
int objects_of(std::string_view word) {
  static constexpr std::array<std::string_view, 6> kNone = {"yield",  "exit",  "mask",
                                                            "unmask", "break", "continue"};
  static constexpr std::array<std::string_view, 16> kOne = {
      "lock", "unlock", "rdlock", "rdunlock", "wrlock", "wrunlock", "signal", "broadcast",
      "down", "up",     "arrive", "raise",    "arm",    "cancel",   "spawn",  "join"};
  if (word == "wait") return 2;
  if (std::find(kNone.begin(), kNone.end(), word) != kNone.end()) return 0;
  if (std::find(kOne.begin(), kOne.end(), word) != kOne.end()) return 1;
  return -1;
}

// After the first problem the parser stands at the end of the code, so every loop ends soon.
class Parser {
 public:
  Parser(std::string_view code, ToyTokens tokens)
      : code_(code), tokens_(std::move(tokens.tokens)), problem_(std::move(tokens.problem)) {
    if (problem_) at_ = tokens_.size() - 1;
  }

  std::vector<ToyStmt> all_statements() {
    std::vector<ToyStmt> statements = statement_list();
    if (!is_end()) fail("there is a `}` without its `{`");
    return statements;
  }

  ToyExpr whole_expression() {
    skip_separators();
    ToyExpr result = expression();
    skip_separators();
    if (!is_end()) fail(fmt::format("`{}` cannot follow a complete expression", peek().text));
    return result;
  }

  std::optional<ToyDiagnostic> take_problem() { return std::move(problem_); }

 private:
  const ToyToken& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_end() const { return peek().kind == Kind::End; }
  bool is_symbol(std::string_view text, size_t ahead = 0) const {
    return peek(ahead).kind == Kind::Symbol && peek(ahead).text == text;
  }
  bool is_word(std::string_view text) const { return peek().kind == Kind::Name && peek().text == text; }
  ToyToken take() {
    const ToyToken token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool take_symbol(std::string_view text) {
    if (!is_symbol(text)) return false;
    take();
    return true;
  }
  void skip_separators() {
    while (peek().kind == Kind::Separator) take();
  }

  void fail(std::string message) { fail_at(peek().line, std::move(message)); }
  void fail_at(int line, std::string message) {
    if (!problem_) problem_ = ToyDiagnostic{line, std::move(message)};
    at_ = tokens_.size() - 1;
  }
  std::string found() const {
    if (is_end()) return "the end of the code";
    if (peek().kind == Kind::Separator) return "the end of the statement";
    return fmt::format("`{}`", peek().text);
  }
  void expect_symbol(std::string_view text, std::string_view after) {
    if (!take_symbol(text)) fail(fmt::format("expected `{}` after {}, found {}", text, after, found()));
  }
  std::string name(std::string_view what) {
    if (peek().kind != Kind::Name || is_toy_keyword(peek().text)) {
      fail(fmt::format("expected {}, found {}", what, found()));
      return "";
    }
    return std::string(take().text);
  }

  std::vector<ToyStmt> statement_list() {
    std::vector<ToyStmt> statements;
    for (skip_separators(); !is_end() && !is_symbol("}"); skip_separators()) {
      statements.push_back(statement());
      const bool label = statements.back().kind == ToyStmt::Kind::Label;
      if (!label && peek().kind != Kind::Separator && !is_end() && !is_symbol("}"))
        fail(fmt::format("expected a newline or `;` before {}", found()));
    }
    return statements;
  }

  std::vector<ToyStmt> block(std::string_view after) {
    const int line = peek().line;
    const Nesting inside(statement_depth_);
    if (statement_depth_ > kDeepest)
      fail_at(line, fmt::format("blocks may be nested {} deep, and this one is deeper", kDeepest));
    expect_symbol("{", after);
    std::vector<ToyStmt> statements = statement_list();
    if (!take_symbol("}")) fail_at(line, "the `{` that begins here has no `}`");
    return statements;
  }

  ToyStmt statement() {
    ToyStmt result;
    result.line = peek().line;
    if (peek().kind != Kind::Name) {
      fail(fmt::format("a statement cannot begin with {}", found()));
      return result;
    }
    const std::string_view word = peek().text;
    if (word == "if") {
      if_statement(result);
    } else if (word == "while") {
      take();
      result.kind = ToyStmt::Kind::While;
      result.args.push_back(expression());
      result.body = block("the condition");
    } else if (word == "for") {
      for_statement(result);
    } else if (word == "goto") {
      take();
      result.kind = ToyStmt::Kind::Goto;
      result.word = name("a label");
    } else if (word == "assert") {
      assert_statement(result);
    } else if (word == "note") {
      take();
      result.kind = ToyStmt::Kind::Note;
      if (peek().kind != Kind::Text) fail("write the text of a note in quotes: note \"text\"");
      result.text = std::string(take().text);
    } else if (is_symbol("(", 1)) {
      result.kind = ToyStmt::Kind::Call;
      result.args.push_back(expression());
      if (is_symbol("=")) fail("cannot assign to the result of a call");
    } else if (objects_of(word) >= 0) {
      word_statement(result);
    } else if (is_symbol(":", 1)) {
      result.kind = ToyStmt::Kind::Label;
      result.word = name("a label");
      take();
    } else {
      result.kind = ToyStmt::Kind::Assign;
      result.args.push_back(reference());
      if (!is_symbol("="))
        fail(fmt::format("expected `=` after `{}`, found {}: is the statement's word misspelt?",
                         result.args[0].name, found()));
      take();
      result.args.push_back(expression());
    }
    return result;
  }

  void if_statement(ToyStmt& result) {
    take();
    result.kind = ToyStmt::Kind::If;
    result.args.push_back(expression());
    result.body = block("the condition");
    const size_t before = at_;
    skip_separators();
    if (!is_word("else")) {
      if (!problem_) at_ = before;
      return;
    }
    take();
    if (is_word("if")) {
      const Nesting inside(statement_depth_);  // counts as if the `else` had a block
      result.otherwise.emplace_back();
      result.otherwise.back().line = peek().line;
      if_statement(result.otherwise.back());
    } else {
      result.otherwise = block("`else`");
    }
  }

  void for_statement(ToyStmt& result) {
    take();
    result.kind = ToyStmt::Kind::For;
    result.word = name("the loop variable");
    if (!is_word("in")) fail(fmt::format("expected `in` after `for {}`, found {}", result.word, found()));
    take();
    result.args.push_back(expression());
    expect_symbol("..", "the first value of the loop");
    result.args.push_back(expression());
    result.body = block("the bounds of the loop");
  }

  void assert_statement(ToyStmt& result) {
    take();
    result.kind = ToyStmt::Kind::Assert;
    const size_t begin = peek().offset;
    result.args.push_back(expression());
    const ToyToken& last = tokens_[at_ - 1];
    result.text = std::string(code_.substr(begin, last.offset + last.text.size() - begin));
    if (peek().kind == Kind::Text) result.text = std::string(take().text);
  }

  void word_statement(ToyStmt& result) {
    const ToyToken word = take();
    result.word = std::string(word.text);
    for (int i = objects_of(word.text); i > 0; --i) {
      if (peek().kind != Kind::Name)
        return fail(fmt::format("`{}` must be followed by a name, found {}", word.text, found()));
      result.args.push_back(reference());
    }
  }

  // Parses x, a[i] or worker#1.
  ToyExpr reference() {
    ToyExpr result{ToyExpr::Kind::Name, 0, "", {}, peek().line};
    // `id` is a keyword, so that no other thing can have this name, but it is a local like any other.
    result.name = is_word("id") ? std::string(take().text) : name("a name");
    if (take_symbol("[")) {
      result.kind = ToyExpr::Kind::Index;
      result.args.push_back(expression());
      expect_symbol("]", "the index");
    }
    return result;
  }

  ToyExpr expression(int weakest = 1) {
    const Nesting inside(expression_depth_);
    if (expression_depth_ == 1) operands_ = 0;
    ToyExpr left = operand();
    while (peek().kind == Kind::Symbol) {
      const int strength = binding(peek().text);
      if (strength == 0 || strength < weakest) break;
      ToyExpr whole{ToyExpr::Kind::Binary, 0, std::string(peek().text), {}, peek().line};
      take();
      whole.args.push_back(std::move(left));
      whole.args.push_back(expression(strength + 1));
      left = std::move(whole);
    }
    return left;
  }

  ToyExpr operand() {
    const ToyToken token = peek();
    ToyExpr result{ToyExpr::Kind::Number, 0, std::string(token.text), {}, token.line};
    const Nesting inside(depth_);
    if (depth_ > kDeepest) fail("this expression is nested too deeply");
    // `a + b + c ...` nests in the tree, too.
    if (++operands_ > kLongest)
      fail(fmt::format("an expression may have {} operands, and this one has more", kLongest));
    if (token.kind == Kind::Number) {
      take();
      result.number = token.number;
    } else if (is_symbol("-") || is_symbol("!")) {
      take();
      result.kind = ToyExpr::Kind::Unary;
      result.args.push_back(expression(kUnaryBinding));
    } else if (take_symbol("(")) {
      result = expression();
      expect_symbol(")", "the expression in parentheses");
    } else if (token.kind == Kind::Name && is_symbol("(", 1)) {
      call(result);
    } else if (token.kind == Kind::Name) {
      result = reference();
    } else {
      fail(fmt::format("expected an expression, found {}", found()));
    }
    return result;
  }

  void call(ToyExpr& result) {
    take();
    take();
    result.kind = ToyExpr::Kind::Call;
    if (take_symbol(")")) return;
    do result.args.push_back(expression());
    while (take_symbol(","));
    expect_symbol(")", "the arguments");
  }

  // Sufficient for every program that people write, and safe for the stack of code that walks the tree.
  static constexpr int kDeepest = 200;
  static constexpr int kLongest = 1000;

  class Nesting {
   public:
    explicit Nesting(int& depth) : depth_(++depth) {}
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& depth_;
  };

  std::string_view code_;
  std::vector<ToyToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;  // of nested operands
  int expression_depth_ = 0;
  int operands_ = 0;  // of the outermost expression
  int statement_depth_ = 0;
  std::optional<ToyDiagnostic> problem_;
};

}  // namespace

ToySyntax parse_toy_code(std::string_view code) {
  Parser parser(code, toy_tokens(code));
  ToySyntax result;
  result.statements = parser.all_statements();
  result.problem = parser.take_problem();
  return result;
}

ToyExprSyntax parse_toy_expr(std::string_view code) {
  Parser parser(code, toy_tokens(code));
  ToyExprSyntax result;
  result.expr = parser.whole_expression();
  result.problem = parser.take_problem();
  return result;
}

}  // namespace slalom
