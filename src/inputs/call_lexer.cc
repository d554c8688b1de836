#include "inputs/call_lexer.h"

#include <charconv>

#include "base/text/characters.h"

namespace slalom {
namespace {

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& origin, int line)
      : text_(text), origin_(origin), line_(line) {}

  Result<std::vector<CallToken>> read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      begin_ = at_;
      if (c == '\n') {
        if (depth_ == 0) add(CallToken::Kind::EndOfLine, "end of line");
        ++at_;
        ++line_;
        line_start_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (is_name_start(c)) {
        while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
        add(CallToken::Kind::Name, std::string(text_.substr(begin_, at_ - begin_)));
      } else if (is_digit(c)) {
        TRY(number());
      } else if (c == '"' || c == '\'') {
        TRY(quoted(c));
      } else {
        TRY(sign());
      }
    }
    begin_ = at_;
    add(CallToken::Kind::End, "the end");
    return std::move(tokens_);
  }

 private:
  template <typename... Args>
  Error wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return error("{}:{}:{}: {}", origin_, line_, begin_ - line_start_ + 1,
                 fmt::format(format, std::forward<Args>(args)...));
  }
  void add(CallToken::Kind kind, std::string text, uint64_t number = 0) {
    tokens_.push_back({.kind = kind,
                       .text = std::move(text),
                       .number = number,
                       .line = line_,
                       .column = static_cast<int>(begin_ - line_start_ + 1),
                       .begin = begin_,
                       .end = at_});
  }

  Result<void> number() {
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin_, at_ - begin_);
    std::string_view digits = word;
    int base = 10;
    if (word.starts_with("0x") || word.starts_with("0X") || word.starts_with("0b")) {
      base = word[1] == 'b' ? 2 : 16;
      digits.remove_prefix(2);
    } else if (word.size() > 1 && word[0] == '0') {
      base = 8;
      digits.remove_prefix(word[1] == 'o' ? 2 : 1);
    }
    uint64_t value = 0;
    const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (trouble == std::errc::result_out_of_range) return wrong("{} does not fit into 64 bits", word);
    if (trouble != std::errc() || end != digits.data() + digits.size())
      return wrong("{} is no number: write 10, 0x1f, 0644 or 0b101", word);
    add(CallToken::Kind::Number, std::string(word), value);
    return {};
  }

  Result<void> quoted(char quote) {
    std::string value;
    ++at_;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') return wrong("the text does not end on its line");
      const char c = text_[at_++];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      TRY(escape(value));
    }
    if (quote == '"') {
      add(CallToken::Kind::Text, std::move(value));
      return {};
    }
    if (value.size() != 1) return wrong("one character goes between ' and ': a text is written \"...\"");
    const uint64_t number = static_cast<uint8_t>(value[0]);
    add(CallToken::Kind::Number, std::move(value), number);
    return {};
  }

  Result<void> escape(std::string& value) {
    const char c = at_ < text_.size() ? text_[at_++] : '\n';
    constexpr std::string_view kFrom = "ntr0abefv\\\"'", kTo("\n\t\r\0\a\b\033\f\v\\\"'", 12);
    if (c == 'x') {
      unsigned byte = 0;
      const char* first = text_.data() + at_;
      const char* last = text_.data() + std::min(at_ + 2, text_.size());
      const auto [end, trouble] = std::from_chars(first, last, byte, 16);
      if (trouble != std::errc() || end != first + 2) return wrong("two hexadecimal digits must follow \\x");
      at_ += 2;
      value += static_cast<char>(byte);
      return {};
    }
    const size_t found = kFrom.find(c);
    if (found == std::string_view::npos)
      return wrong("a text has \\{}: it may have \\n \\t \\r \\0 \\a \\b \\e \\f \\v \\\\ \\\" \\' and \\xNN",
                   c == '\n' ? ' ' : c);
    value += kTo[found];
    return {};
  }

  Result<void> sign() {
    const char c = text_[at_];
    const std::string_view two = text_.substr(at_, 2);
    if (two == "<<" || two == ">>") {
      at_ += 2;
      add(CallToken::Kind::Sign, std::string(two));
      return {};
    }
    if (std::string_view("=(),{}[]&|^~+-*.;:").find(c) == std::string_view::npos)
      return wrong(
          "what is '{}' to mean? A line is a call, such as fd = open(\"/tmp/a\", O_RDWR)",
          c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c)));
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    ++at_;
    if (c == ';')
      add(CallToken::Kind::EndOfLine, ";");
    else
      add(CallToken::Kind::Sign, std::string(1, c));
    return {};
  }

  std::string_view text_;
  const std::string& origin_;
  int line_;
  size_t at_ = 0;
  size_t begin_ = 0;
  size_t line_start_ = 0;
  int depth_ = 0;
  std::vector<CallToken> tokens_;
};

}  // namespace

Result<std::vector<CallToken>> read_call_tokens(std::string_view text, const std::string& origin,
                                                int first_line) {
  return Lexer(text, origin, first_line).read();
}

}  // namespace slalom
