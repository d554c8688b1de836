#include "targets/kernel_content.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <sstream>

namespace slalom {

std::string to_text(const KernelContent& content) {
  const std::string scope = fmt::format("{}", fmt::join(content.scope, " "));
  return fmt::format("{}\n{}.{}{}{}\n{}", content.origin, content.machine, content.version,
                     scope.empty() ? "" : " ", scope, content.text);
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
  for (std::string one; words >> one;) content.scope.push_back(one);
  return content;
}

}  // namespace slalom
