#include "campaign/expectation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace slalom {
namespace {

std::string_view key_of(const Expectation& expected, const Verdict& verdict) {
  return expected.titles.empty() ? name(verdict.kind) : std::string_view(verdict.title);
}

bool is_race(std::string_view listed) {
  return listed == name(BugKind::DataRace) || listed.starts_with("data race");
}

}  // namespace

bool counts(const Verdict& verdict, bool races_count) {
  // Leaks are only detected if the user asks for them.
  return verdict.severity == Severity::Failure || (verdict.severity == Severity::Race && races_count) ||
         verdict.kind == BugKind::Leak;
}

bool Expectation::lists(const Verdict& verdict) const {
  return std::ranges::find(listed(), key_of(*this, verdict)) != listed().end();
}

Comparison compare(const Expectation& expected, const std::vector<Verdict>& verdicts, bool races_count) {
  Comparison comparison;
  for (const std::string& one : expected.listed()) {
    const bool seen = std::ranges::any_of(
        verdicts, [&](const Verdict& verdict) { return key_of(expected, verdict) == one; });
    (seen ? comparison.found : comparison.missing).push_back(one);
  }
  for (const Verdict& verdict : verdicts) {
    if (counts(verdict, races_count) && !expected.lists(verdict))
      comparison.unexpected.push_back(verdict.title);
  }
  // A race that is listed besides a failure is a step on the way to it. Only the failure must show.
  const auto fails = [](const std::string& one) { return !is_race(one); };
  const bool only_races = std::ranges::none_of(expected.listed(), fails);
  const bool shown = only_races ? !comparison.found.empty() : std::ranges::any_of(comparison.found, fails);
  comparison.met = comparison.unexpected.empty() && (shown || expected.listed().empty());
  return comparison;
}

std::string in_words(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const auto& [what, titles] :
       {std::pair("found", &comparison.found), std::pair("not found", &comparison.missing),
        std::pair("found, but not listed", &comparison.unexpected)})
    if (!titles->empty()) parts.push_back(fmt::format("{}: \"{}\"", what, fmt::join(*titles, "\", \"")));
  if (parts.empty()) parts.emplace_back("no failure");
  return fmt::format("{}as expected: {}", comparison.met ? "" : "not ", fmt::join(parts, "; "));
}

}  // namespace slalom
