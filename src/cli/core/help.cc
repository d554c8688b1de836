// The layout of a verb's --help: usage, purpose, options and the sections after them, in 80 columns.
#include "cli/core/command.h"

namespace slalom {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kColumn = 22;  // column of the explanations

class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* verb, std::string, CLI::AppFormatMode) const override {
    std::string usage = "slalom " + verb->get_name();
    std::string items;
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_positional())
        usage += option->get_required() ? " " + option->get_name() : " [" + option->get_name() + "]";
      items += item(*option);
    }
    std::string text = fmt::format("{} [OPTION...]\n\n{}\n\n{}", usage, verb->get_description(), items);
    if (const std::string footer = verb->get_footer(); !footer.empty()) text += "\n" + footer;
    return text;
  }

 private:
  static std::string item(const CLI::Option& option) {
    std::string head = "  " + option.get_name(false, true);
    if (const std::string type = option.get_type_name(); !type.empty()) head += " " + type;
    std::string about = option.get_description();
    if (const std::string value = option.get_default_str(); !value.empty())
      about += fmt::format(" (default: {})", value);
    if (head.size() + 2 > kColumn) return head + "\n" + wrap(about, kWidth, kColumn, kColumn);
    return head + wrap(about, kWidth, kColumn, kColumn).substr(head.size());
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormat>();
}

std::string help_list(const std::vector<std::pair<std::string, std::string>>& items) {
  size_t column = 0;
  for (const auto& [head, about] : items) column = std::max(column, head.size() + 4);
  std::string text;
  for (const auto& [head, about] : items)
    text += ("  " + head) + wrap(about, kWidth, column, column).substr(head.size() + 2);
  return text;
}

}  // namespace slalom
