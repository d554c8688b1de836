#include "targets/kernel_content.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <sstream>

namespace slalom {

namespace {

constexpr std::string_view kKernel = "kernel=", kModules = "modules=";

// Paths may contain spaces; words may not.
std::string as_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    if (c > ' ' && c != '%')
      word += c;
    else
      word += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return word;
}

std::string from_word(std::string_view word) {
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    unsigned char code = 0;
    const char* const digits = word.data() + i + 1;
    if (word[i] == '%' && word.size() - i > 2 &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      text += static_cast<char>(code);
      i += 2;
    } else {
      text += word[i];
    }
  }
  return text;
}

}  // namespace

std::string to_text(const KernelContent& content) {
  std::vector<std::string> words = {fmt::format("{}.{}", content.machine, content.version)};
  if (!content.kernel.empty()) words.push_back(fmt::format("{}{}", kKernel, as_word(content.kernel)));
  if (!content.module_directory.empty())
    words.push_back(fmt::format("{}{}", kModules, as_word(content.module_directory)));
  words.insert(words.end(), content.scope.begin(), content.scope.end());
  return fmt::format("{}\n{}\n{}", content.origin, fmt::join(words, " "), content.text);
}
Result<KernelContent> parse_kernel_content(const std::string& text) {
  const size_t first = text.find('\n');
  const size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos) return error("the capsule holds no kernel test");
  KernelContent content{.origin = text.substr(0, first), .text = text.substr(second + 1)};
  std::istringstream words(text.substr(first + 1, second - first - 1));
  words >> content.machine;
  // The first version of the machine had no number.
  const size_t dot = content.machine.find('.');
  content.version = 1;
  if (dot != std::string::npos) {
    const std::string number = content.machine.substr(dot + 1);
    content.machine.resize(dot);
    const char* const end = number.data() + number.size();
    if (std::from_chars(number.data(), end, content.version).ptr != end)
      return error("the capsule holds no kernel test");
  }
  for (std::string one; words >> one;) {
    if (one.starts_with(kKernel))
      content.kernel = from_word(std::string_view(one).substr(kKernel.size()));
    else if (one.starts_with(kModules))
      content.module_directory = from_word(std::string_view(one).substr(kModules.size()));
    else
      content.scope.push_back(one);
  }
  return content;
}

}  // namespace slalom
