// The accepted values of options, and the errors for other values.
#include <charconv>
#include <cmath>

#include "cli/core/command.h"

namespace slalom {

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    uint64_t value = 0;
    const char* last = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data(), last, value);
    if (code == std::errc() && end == last && value >= least && value <= most) return {};
    const std::string range =
        most == UINT64_MAX ? fmt::format("of at least {}", least) : fmt::format("from {} to {}", least, most);
    return fmt::format("takes a whole number {}, not \"{}\"", range, text);
  };
  return CLI::Validator(check, "");
}

Result<double> parse_duration(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (code != std::errc() || scale == 0 || !std::isfinite(value) || value <= 0)
    return error("--time takes a duration such as 30s, 5m or 2h, not \"{}\"", text);
  return value * scale;
}

Result<ChoicePolicy> parse_choices(const std::string& text) {
  ChoicePolicy policy;
  if (text == "sync")
    policy.where = ChoicePolicy::Where::Sync;
  else if (text == "nowhere")
    policy.where = ChoicePolicy::Where::Nowhere;
  else if (text != "everywhere")
    return error("--choices is everywhere, sync or nowhere, not \"{}\"", text);
  return policy;
}

}  // namespace slalom
