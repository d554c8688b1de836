// parse_calls(): parses the readable form to a CallProgram.
//
//   line   : [name =] call(value, ...) | name = value | store(type, place, value)
//   value  : numbers, constants and names with | ^ & << >> + - * ~ and brackets, "text", {type value, ...},
//            buf(size), &name or &name(size), name[i], name.type[i], load(type, place), sizeof(name)
#include "inputs/call_values.h"

namespace slalom {
namespace {

class Parser : private CallValues {
 public:
  using CallValues::CallValues;

  Result<CallProgram> parse() {
    while (peek().kind != CallToken::Kind::End) {
      if (peek().kind == CallToken::Kind::EndOfLine) {
        ++at_;
        continue;
      }
      TRY(statement());
      const CallToken& after = peek();
      if (after.kind != CallToken::Kind::EndOfLine && after.kind != CallToken::Kind::End)
        return wrong(after, "unexpected {} after the call: each call has a line of its own", shown(after));
    }
    return std::move(program_);
  }

 private:
  Result<void> statement() {
    const CallToken& first = peek();
    if (first.kind != CallToken::Kind::Name)
      return wrong(first, "expected a call such as fd = open(\"/tmp/a\", O_RDWR), not {}", shown(first));
    std::string name;
    if (is_sign("=", 1)) {
      name = first.text;
      TRY(check_name(first));
      at_ += 2;
    }
    const CallToken& word = peek();
    if (word.kind == CallToken::Kind::Name && is_sign("(", 1) && !is_function(word.text))
      return call(name, first);
    if (name.empty() && word.text == "store" && is_sign("(", 1)) return store();
    if (name.empty())
      return wrong(word, "expected a call such as read(fd, buf(16), 16), not {}", shown(word));
    TRY_ASSIGN(const Operand operand, value());
    names_[name] = operand;
    return {};
  }

  Result<void> call(const std::string& name, const CallToken& first) {
    const CallToken word = peek();
    CallStep step;
    if (const auto number = system_call_number(word.text))
      step.number = *number;
    else
      return wrong(word, "unknown system call `{}`{}", word.text, similar_system_calls(word.text));
    at_ += 2;
    while (!is_sign(")")) {
      if (step.size > 0) TRY(expect_sign(",", "between two arguments"));
      if (step.size == CallStep::kOperands) return wrong(peek(), "a system call has at most six arguments");
      TRY_ASSIGN(step.operands[step.size], value());
      ++step.size;
    }
    const size_t end = peek().end;
    ++at_;
    TRY(add(step, word));
    program_.sources.push_back(
        {.text = std::string(text_.substr(first.begin, end - first.begin)), .line = first.line});
    if (!name.empty()) names_[name] = {.kind = Operand::Kind::Result, .value = calls_};
    ++calls_;
    return {};
  }

  Result<void> store() {
    const CallToken word = peek();
    at_ += 2;
    TRY_ASSIGN(const FieldType* type, little_type());
    TRY(expect_sign(",", "after the type"));
    const CallToken where = peek();
    TRY_ASSIGN(const Operand place, value());
    TRY(expect_sign(",", "after the place"));
    TRY_ASSIGN(const Operand what, value());
    TRY(expect_sign(")", "after the value"));
    TRY(check_place(where, place, type->size));
    return add_store(word, type->size, static_cast<uint32_t>(place.value), what);
  }

  uint64_t calls_ = 0;
};

}  // namespace

Result<CallProgram> parse_calls(std::string_view text, const std::string& origin, int first_line) {
  TRY_ASSIGN(std::vector<CallToken> tokens, read_call_tokens(text, origin, first_line));
  return Parser(text, origin, std::move(tokens)).parse();
}

}  // namespace slalom
