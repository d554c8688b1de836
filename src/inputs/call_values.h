// CallValues: parses the values in a list of calls to operands and data. This is the part of parse_calls()
// that knows nothing of statements; only call_parser.cc uses it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inputs/call_lexer.h"
#include "inputs/call_program.h"
#include "inputs/image.h"
#include "inputs/system_calls.h"

namespace slalom {

inline constexpr uint32_t kDefaultOutput = 256;  // size of &name in bytes
inline constexpr int kMaxDepth = 32;

struct FieldType {
  std::string_view name;
  uint8_t size;
  bool is_signed = false;
  bool big_endian = false;
};
inline constexpr FieldType kTypes[] = {{"u8", 1},
                                       {"u16", 2},
                                       {"u32", 4},
                                       {"u64", 8},
                                       {"i8", 1, true},
                                       {"i16", 2, true},
                                       {"i32", 4, true},
                                       {"i64", 8, true},
                                       {"ptr", 8},
                                       {"u16be", 2, false, true},
                                       {"u32be", 4, false, true},
                                       {"u64be", 8, false, true}};

inline const FieldType* find_type(std::string_view name) {
  for (const FieldType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

inline bool is_constant(const Operand& operand) {
  return operand.kind == Operand::Kind::Constant;
}

class CallValues {
 public:
  CallValues(std::string_view text, const std::string& origin, std::vector<CallToken> tokens)
      : text_(text), origin_(origin), tokens_(std::move(tokens)) {}

 protected:
  template <typename... Args>
  Error wrong(const CallToken& token, fmt::format_string<Args...> format, Args&&... args) const {
    return error("{}:{}:{}: {}", origin_, token.line, token.column,
                 fmt::format(format, std::forward<Args>(args)...));
  }
  static std::string shown(const CallToken& token) {
    if (token.kind == CallToken::Kind::Text) return "a text";
    if (token.kind == CallToken::Kind::End || token.kind == CallToken::Kind::EndOfLine) return "end of line";
    return fmt::format("`{}`", token.text);
  }
  const CallToken& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_sign(std::string_view sign, size_t ahead = 0) const {
    return peek(ahead).kind == CallToken::Kind::Sign && peek(ahead).text == sign;
  }
  bool take_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  Result<void> expect_sign(std::string_view sign, std::string_view where) {
    if (take_sign(sign)) return {};
    return wrong(peek(), "expected `{}` {}, not {}", sign, where, shown(peek()));
  }

  Result<void> check_name(const CallToken& token) const {
    if (is_function(token.text) || find_type(token.text) != nullptr || linux_constant(token.text))
      return wrong(token, "`{}` has a meaning already: choose another name", token.text);
    return {};
  }

  static bool is_function(std::string_view name) {
    return name == "buf" || name == "load" || name == "store" || name == "sizeof";
  }

  Result<void> add(const CallStep& step, const CallToken& token) {
    if (program_.steps.size() == kMaxCallSteps)
      return wrong(token, "too long: a list has at most {} calls and stores", kMaxCallSteps);
    program_.steps.push_back(step);
    return {};
  }
  Result<void> add_store(const CallToken& token, uint16_t size, uint32_t place, const Operand& what) {
    CallStep step{.kind = CallStep::Kind::Store, .size = size, .number = place};
    step.operands[0] = what;
    return add(step, token);
  }

  // --- data ---

  Result<uint32_t> allocate(const CallToken& token, uint64_t size) {
    const size_t unit = size >= 4096 ? 4096 : 16;
    const size_t offset = (program_.data.size() + unit - 1) / unit * unit;
    if (size > kMaxCallData || offset + size > kMaxCallData)
      return wrong(token, "too much data: a list of calls has at most {} KiB", kMaxCallData / 1024);
    program_.data.resize(offset + size);
    program_.objects.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
    return static_cast<uint32_t>(offset);
  }
  Result<Operand> object(const CallToken& token, std::string_view bytes) {
    TRY_ASSIGN(const uint32_t offset, allocate(token, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), program_.data.begin() + offset);
    return Operand{.kind = Operand::Kind::Pointer, .value = offset};
  }
  Result<Operand> room(const CallToken& token, const Operand& size) {
    if (!is_constant(size) || size.value == 0)
      return wrong(token, "the size of a buffer must be a number above 0");
    TRY_ASSIGN(const uint32_t offset, allocate(token, size.value));
    return Operand{.kind = Operand::Kind::Pointer, .value = offset};
  }

  Result<const FieldType*> little_type() {
    const CallToken& token = peek();
    const FieldType* type = find_type(token.text);
    if (token.kind != CallToken::Kind::Name || type == nullptr || type->big_endian)
      return wrong(token, "expected a type, not {}: u8, u16, u32, u64, i8, i16, i32, i64 or ptr",
                   shown(token));
    ++at_;
    return type;
  }
  Result<void> check_place(const CallToken& token, const Operand& place, unsigned size) const {
    if (place.kind != Operand::Kind::Pointer)
      return wrong(token, "expected a place in the data: the name of a buffer, text or structure");
    if (place.value > program_.data.size() || program_.data.size() - place.value < size)
      return wrong(token, "this lies outside the data");
    return {};
  }

  // Parses {u16 AF_INET, u16be 80, "abc", zero(8), ...}. Values that are not known yet are stored when the
  // call is made.
  Result<Operand> structure() {
    const CallToken open = peek();
    ++at_;
    struct Late {
      CallToken token;
      size_t offset;
      uint8_t size;
      Operand what;
    };
    std::string bytes;
    std::vector<Late> late;
    while (!is_sign("}")) {
      if (!bytes.empty()) TRY(expect_sign(",", "between two fields"));
      const CallToken word = peek();
      const FieldType* type = word.kind == CallToken::Kind::Name ? find_type(word.text) : nullptr;
      if (word.kind == CallToken::Kind::Text) {
        ++at_;
        bytes += word.text;
      } else if (word.text == "zero" || word.text == "text") {
        TRY(filled(bytes));
      } else if (type == nullptr) {
        return wrong(word,
                     "expected a field, not {}: a type (u8, u16, u32, u64, i8 to i64, u16be, u32be, "
                     "u64be, ptr) with a value, \"bytes\", text(size, \"...\") or zero(size)",
                     shown(word));
      } else {
        ++at_;
        const CallToken start = peek();
        TRY_ASSIGN(const Operand field, value());
        if (is_constant(field)) {
          for (unsigned i = 0; i < type->size; ++i) {
            const unsigned byte = type->big_endian ? type->size - 1 - i : i;
            bytes += static_cast<char>(field.value >> (8 * byte));
          }
        } else {
          if (type->big_endian)
            return wrong(start, "a field of type {} must be known beforehand", type->name);
          late.push_back({start, bytes.size(), type->size, field});
          bytes.append(type->size, '\0');
        }
      }
      if (bytes.size() > kMaxCallData) return wrong(word, "too much data for a list of calls");
    }
    ++at_;
    if (bytes.empty()) return wrong(open, "a structure needs at least one field");
    TRY_ASSIGN(const Operand whole, object(open, bytes));
    for (const Late& each : late)
      TRY(add_store(each.token, each.size, static_cast<uint32_t>(whole.value + each.offset), each.what));
    return whole;
  }

  Result<void> filled(std::string& bytes) {
    const CallToken word = peek();
    ++at_;
    TRY(expect_sign("(", "before the size"));
    TRY_ASSIGN(const Operand size, value());
    if (!is_constant(size) || size.value > kMaxCallData)
      return wrong(word, "the size must be a number up to {}", kMaxCallData);
    std::string text;
    if (word.text == "text") {
      TRY(expect_sign(",", "after the size"));
      text = peek().text;
      if (peek().kind != CallToken::Kind::Text || text.size() > size.value)
        return wrong(peek(), "expected a text of at most {} bytes", size.value);
      ++at_;
    }
    TRY(expect_sign(")", "after the size"));
    text.resize(size.value);
    bytes += text;
    return {};
  }

  // --- values ---

  static int precedence(const CallToken& token) {
    if (token.kind != CallToken::Kind::Sign) return 0;
    if (token.text == "|") return 1;
    if (token.text == "^") return 2;
    if (token.text == "&") return 3;
    if (token.text == "<<" || token.text == ">>") return 4;
    if (token.text == "+" || token.text == "-") return 5;
    return token.text == "*" ? 6 : 0;
  }

  Result<Operand> value(int least = 1) {
    if (++depth_ > kMaxDepth) return wrong(peek(), "too many brackets within each other");
    TRY_ASSIGN(Operand left, term());
    while (precedence(peek()) >= least) {
      const CallToken sign = peek();
      ++at_;
      TRY_ASSIGN(const Operand right, value(precedence(sign) + 1));
      TRY_ASSIGN(left, combined(sign, left, right));
    }
    --depth_;
    return left;
  }

  Result<Operand> combined(const CallToken& sign, Operand left, Operand right) const {
    const char c = sign.text[0];
    if (c == '+' && is_constant(left)) std::swap(left, right);
    if (!is_constant(right) || (!is_constant(left) && c != '+' && c != '-'))
      return wrong(sign, "only + and - a number can be done to what is not known beforehand");
    const uint64_t a = left.value, b = right.value;
    if (!is_constant(left)) {
      const auto by = static_cast<int64_t>(c == '+' ? b : 0 - b);
      if (left.kind == Operand::Kind::Pointer) {
        left.value += static_cast<uint64_t>(by);
        if (left.value > program_.data.size()) return wrong(sign, "this lies outside the data");
        return left;
      }
      const int64_t sum =
          left.addend + std::clamp<int64_t>(by, INT32_MIN * int64_t{2}, INT32_MAX * int64_t{2});
      if (sum < INT32_MIN || sum > INT32_MAX) return wrong(sign, "the number is too large to be added");
      left.addend = static_cast<int32_t>(sum);
      return left;
    }
    left.value = c == '|'   ? a | b
                 : c == '^' ? a ^ b
                 : c == '&' ? a & b
                 : c == '<' ? (b < 64 ? a << b : 0)
                 : c == '>' ? (b < 64 ? a >> b : 0)
                 : c == '+' ? a + b
                 : c == '-' ? a - b
                            : a * b;
    return left;
  }

  Result<Operand> term() {
    const CallToken token = peek();
    switch (token.kind) {
      case CallToken::Kind::Number:
        ++at_;
        return Operand{.value = token.number};
      case CallToken::Kind::Text:
        ++at_;
        return object(token, token.text + '\0');
      case CallToken::Kind::Name:
        return named();
      case CallToken::Kind::Sign:
        break;
      case CallToken::Kind::EndOfLine:
      case CallToken::Kind::End:
        return wrong(token, "the line ends where a value is expected");
    }
    if (token.text == "{") return structure();
    if (token.text == "&") return output();
    if (token.text != "-" && token.text != "~" && token.text != "(")
      return wrong(token, "expected a value, not {}", shown(token));
    ++at_;
    if (token.text == "(") {
      TRY_ASSIGN(const Operand inside, value());
      TRY(expect_sign(")", "after the value"));
      return inside;
    }
    if (++depth_ > kMaxDepth) return wrong(token, "too many signs in a row");
    TRY_ASSIGN(Operand of, term());
    --depth_;
    if (!is_constant(of)) return wrong(token, "`{}` needs what is known beforehand", token.text);
    of.value = token.text == "-" ? 0 - of.value : ~of.value;
    return of;
  }

  // Parses &name, memory for a call's output. Its first use allocates it.
  Result<Operand> output() {
    ++at_;
    const CallToken token = peek();
    if (token.kind != CallToken::Kind::Name)
      return wrong(token, "a name must follow &, not {}", shown(token));
    ++at_;
    if (const auto known = names_.find(token.text); known != names_.end()) {
      if (known->second.kind == Operand::Kind::Pointer && !is_sign("(")) return known->second;
      return wrong(token, "`{}` is {}", token.text,
                   known->second.kind == Operand::Kind::Pointer
                       ? "there already: a size can be given only the first time"
                       : "a number: it has no place in the data");
    }
    TRY(check_name(token));
    Operand size{.value = kDefaultOutput};
    if (take_sign("(")) {
      TRY_ASSIGN(size, value());
      TRY(expect_sign(")", "after the size"));
    }
    TRY_ASSIGN(const Operand result, room(token, size));
    names_[token.text] = result;
    return result;
  }

  Result<Operand> named() {
    const CallToken token = peek();
    ++at_;
    if (is_function(token.text) && is_sign("(")) return function(token);
    if (const auto known = names_.find(token.text); known != names_.end()) {
      if (is_sign("[") || is_sign(".")) return element(token, known->second);
      return known->second;
    }
    if (const auto constant = linux_constant(token.text))
      return Operand{.value = static_cast<uint64_t>(*constant)};
    if (is_sign("("))
      return wrong(token, "a call cannot be an argument: name its result on a line of its own, x = {}(...)",
                   token.text);
    std::string known;
    for (const auto& [name, operand] : names_) known += (known.empty() ? "; names so far: " : ", ") + name;
    return wrong(token, "unknown name `{}`{}{}", token.text, similar_constants(token.text), known);
  }

  Result<Operand> function(const CallToken& token) {
    ++at_;
    Operand result;
    const CallToken inside = peek();
    if (token.text == "buf") {
      TRY_ASSIGN(const Operand size, value());
      TRY_ASSIGN(result, room(inside, size));
    } else if (token.text == "sizeof") {
      TRY_ASSIGN(const Operand of, value());
      TRY(check_place(inside, of, 0));
      for (const DataObject& each : program_.objects)
        if (each.offset == of.value) result.value = each.size;
      if (result.value == 0) return wrong(inside, "sizeof needs the name of a buffer, text or structure");
    } else if (token.text == "load") {
      TRY_ASSIGN(const FieldType* type, little_type());
      TRY(expect_sign(",", "after the type"));
      const CallToken where = peek();
      TRY_ASSIGN(const Operand place, value());
      TRY(check_place(where, place, type->size));
      result = load(*type, place.value);
    } else {
      return wrong(token, "`store` gives no value: it is a line of its own");
    }
    TRY(expect_sign(")", fmt::format("after what {} needs", token.text)));
    return result;
  }

  static Operand load(const FieldType& type, uint64_t place) {
    return {.kind = Operand::Kind::Load, .size = type.size, .is_signed = type.is_signed, .value = place};
  }

  // Parses p[1], an int, or p.u64[1].
  Result<Operand> element(const CallToken& token, const Operand& base) {
    const FieldType* type = find_type("i32");
    if (take_sign(".")) {
      TRY_ASSIGN(type, little_type());
    }
    TRY(expect_sign("[", "before an index"));
    const CallToken where = peek();
    TRY_ASSIGN(const Operand index, value());
    TRY(expect_sign("]", "after the index"));
    if (!is_constant(index) || index.value > kMaxCallData) return wrong(where, "the index must be a number");
    Operand place = base;
    place.value += index.value * type->size;
    if (base.kind != Operand::Kind::Pointer)
      return wrong(token, "`{}` is a number: it has no elements", token.text);
    TRY(check_place(where, place, type->size));
    return load(*type, place.value);
  }

  std::string_view text_;
  const std::string& origin_;
  std::vector<CallToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::map<std::string, Operand, std::less<>> names_;
  CallProgram program_;
};

}  // namespace slalom
