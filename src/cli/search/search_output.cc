#include "cli/search/search_output.h"

#include <algorithm>
#include <iostream>

#include "cli/core/command.h"
#include "cli/search/search_figures.h"
#include "finding/finding_json.h"
#include "report/core/junit.h"

namespace slalom {
namespace {

constexpr size_t kReportsShown = 3;

std::string_view end_name(ExploreResult::End end) {
  switch (end) {
    case ExploreResult::End::SpaceExplored:
      return "done";
    case ExploreResult::End::ScheduleLimit:
      return "schedule limit";
    case ExploreResult::End::TimeLimit:
      return "time limit";
    case ExploreResult::End::Interrupted:
      return "interrupted";
    case ExploreResult::End::FirstFailure:
      return "first failure";
    case ExploreResult::End::Failed:
      return "failed";
  }
  return "";
}

// Finding nothing is as expected only if an execution reached its end.
bool is_as_expected(const Comparison& comparison, const Claim& claim) {
  return comparison.met && (claim.no_end.empty() || !comparison.found.empty());
}

auto unfinished(const std::vector<CampaignResult::Kept>& findings) {
  const auto ended = [](CutShort why) { return why == CutShort::Interrupted || why == CutShort::OutOfTime; };
  return std::ranges::count_if(
      findings, [&](const auto& kept) { return ended(kept.shrinking) || ended(kept.replaying); });
}

bool is_interrupted(const std::vector<CampaignResult::Kept>& findings) {
  return std::ranges::any_of(findings, [](const auto& kept) {
    return kept.shrinking == CutShort::Interrupted || kept.replaying == CutShort::Interrupted;
  });
}

std::vector<std::string> warnings(const CampaignResult& result) {
  std::vector<std::string> all = result.explored.trouble;
  if (result.unsaved)
    all.push_back(
        fmt::format("the search was not saved and cannot go on later: {}", result.unsaved->message));
  for (const UncontrolledAct& act : result.uncontrolled) all.push_back(act.text);
  return all;
}

// Prints whole reports of the worst findings, and short ones of the rest.
void print_findings(const std::vector<CampaignResult::Kept>& findings, bool full) {
  size_t reports = 0;
  for (const auto& kept : findings) {
    const bool worst = kept.finding.verdict.severity == findings.front().finding.verdict.severity;
    if (full || (worst && reports < kReportsShown)) {
      std::cout << kept.report;
      ++reports;
    } else {
      std::cout << brief(kept.finding, kept.capsule.string(), output_style());
    }
    std::cout << "\n";
  }
}

std::string how_many(const std::vector<CampaignResult::Kept>& findings) {
  std::string parts;
  for (Severity severity : {Severity::Failure, Severity::Race, Severity::Suspicion}) {
    const auto count = std::count_if(findings.begin(), findings.end(), [&](const auto& kept) {
      return kept.finding.verdict.severity == severity;
    });
    if (count > 0)
      parts += fmt::format("{}{}", parts.empty() ? "" : ", ",
                           plural(static_cast<uint64_t>(count), name(severity)));
  }
  return parts;
}

// Says why the search ended early, and how to continue it; empty if it did not.
std::string early_end(ExploreResult::End end, const std::filesystem::path& state) {
  switch (end) {
    case ExploreResult::End::SpaceExplored:
    case ExploreResult::End::ScheduleLimit:  // visible from the number of executions
    case ExploreResult::End::Failed:
      return {};
    case ExploreResult::End::FirstFailure:
      return "ended at the first failure: there may be more";
    case ExploreResult::End::TimeLimit:
    case ExploreResult::End::Interrupted:
      return fmt::format("{}: {}", end == ExploreResult::End::TimeLimit ? "out of time" : "interrupted",
                         state.empty() ? "with --state FILE it could go on later"
                                       : "the same command goes on from " + state.string());
  }
  return {};
}

// Empty if there are none.
std::string unpinned_in_words(const std::vector<std::string>& threads, bool full, size_t width) {
  if (threads.empty()) return {};
  const std::string names = full ? fmt::format("{}", fmt::join(threads, ", "))
                                 : fmt::format("such as {} (--full names them)", threads.front());
  return wrap(
      fmt::format("not controlled: when {} of the kernel {}, which cannot be pinned to a CPU: {}",
                  plural(threads.size(), "thread"), threads.size() == 1 ? "runs" : "run", printable(names)),
      width);
}

}  // namespace

nlohmann::ordered_json search_json(const Target& target, const Job& job, const CampaignResult& result,
                                   const std::optional<Comparison>& comparison) {
  const ExploreResult& r = result.explored;
  nlohmann::ordered_json json;
  json["target"] = target.id.name;
  json["strategy"] = to_text(job.strategy);
  json["seed"] = job.strategy.seed;
  json["executions"] = r.executions;
  json["blocked"] = r.blocked;
  json["truncated"] = r.truncated;
  json["diverged"] = r.diverged;
  json["failed"] = r.failed;
  json["classes"] = r.classes;
  json["exhausted"] = result.claim.exhausted;
  json["caveats"] = nlohmann::ordered_json::array();
  for (const Caveat& caveat : result.claim.caveats)
    json["caveats"].push_back({{"kind", name(caveat.kind)}, {"text", caveat.text}});
  json["end"] = end_name(r.end);
  json["coverage"] = {{"statement", result.claim.statement}, {"bound", r.coverage.bound}};
  if (r.coverage.completed) json["coverage"]["completed"] = *r.coverage.completed;
  if (r.coverage.estimated_total > 0) json["coverage"]["estimated_total"] = r.coverage.estimated_total;
  json["max_steps"] = result.max_steps;
  json["steps"] = r.positions;
  json["choice_points"] = r.choice_points;
  json["seconds"] = result.seconds;
  if (!result.statistics.empty()) {
    json["search_cpu_seconds"] = result.search_cpu_seconds;
    json["statistics"] = nlohmann::ordered_json::object();
    for (const auto& [name, value] : result.statistics) json["statistics"][name] = value;
    json["communication_points"] = result.communication_points;
  }
  if (!target.limits.unpinned_threads.empty()) json["unpinned_threads"] = target.limits.unpinned_threads;
  for (const Caveat& caveat : result.claim.caveats)
    if (caveat.kind == Caveat::Kind::AccessesNotSeen) json["not_seen"] = caveat.text;
  if (result.compared.serial_orders > 0) json["serial_orders"] = result.compared.serial_orders;
  if (!result.compared.not_compared.empty()) json["not_compared"] = result.compared.not_compared;
  if (target.reports.uncontrolled) {
    json["uncontrolled"] = nlohmann::ordered_json::array();
    for (const UncontrolledAct& act : result.uncontrolled) json["uncontrolled"].push_back(act.text);
  }
  json["resumed"] = result.resumed_tasks;
  json["findings"] = nlohmann::ordered_json::array();
  for (const auto& kept : result.findings)
    json["findings"].push_back(finding_json(kept.finding, kept.capsule.string(), kept.words));
  json["unfinished"] = unfinished(result.findings);
  if (comparison)
    json["expected"] = {{"met", is_as_expected(*comparison, result.claim)},
                        {"found", comparison->found},
                        {"missing", comparison->missing},
                        {"unexpected", comparison->unexpected}};
  json["trouble"] = r.trouble;
  if (result.unsaved) json["unsaved"] = result.unsaved->message;
  return json;
}

std::string search_junit(const Target& target, const CampaignResult& result, bool races_count,
                         const std::optional<Comparison>& comparison) {
  const ExploreResult& r = result.explored;
  JunitSuite suite{target.id.name, result.seconds, {}, {}};
  JunitCase search{.name = "search"};
  if (!result.claim.no_end.empty() && result.findings.empty())
    search = {"search", JunitCase::Result::Error, "error", result.claim.no_end, result.claim.no_end};
  else if (comparison && !comparison->met && comparison->unexpected.empty())
    search = {"search", JunitCase::Result::Failed, "expect", in_words(*comparison), in_words(*comparison)};
  suite.cases.push_back(search);
  for (const auto& kept : result.findings) {
    const Verdict& verdict = kept.finding.verdict;
    const bool fails = counts(verdict, races_count) && !(comparison && target.expected->lists(verdict));
    suite.cases.push_back({verdict.title, fails ? JunitCase::Result::Failed : JunitCase::Result::Passed,
                           std::string(name(verdict.kind)), verdict.title, kept.report});
  }
  suite.output =
      fmt::format("{}\n{}\n", plural(r.executions + r.truncated, "execution"), result.claim.in_words());
  for (const std::string& what : result.compared.not_compared) suite.output += "not compared: " + what + "\n";
  for (const std::string& warning : warnings(result)) suite.output += "warning: " + warning + "\n";
  return junit_xml(suite);
}

void print_search(const Target& target, const Job& job, const CampaignResult& result,
                  const std::optional<Comparison>& comparison, const SearchOutput& output) {
  const Style style = output_style();
  const size_t width = terminal_width();
  const ExploreResult& r = result.explored;
  print_findings(result.findings, output.full);

  const bool failed = r.end == ExploreResult::End::Failed;
  const std::string found = !result.findings.empty()      ? style.paint(Ink::Red, how_many(result.findings))
                            : failed                      ? style.paint(Ink::Red, "nothing could be executed")
                            : result.claim.no_end.empty() ? style.paint(Ink::Green, "nothing found")
                                                          : style.paint(Ink::Red, "nothing reached its end");
  std::cout << wrap(fmt::format("{}: {} in {} by {}", printable(target.id.name), found,
                                plural(r.executions + r.truncated, "execution"), to_text(job.strategy)),
                    width, 0, 2);
  std::string counts = plural(r.classes, "distinct interleaving");
  if (r.blocked > 0) counts += fmt::format(", {} abandoned", human_number(r.blocked));
  if (r.truncated > 0) counts += fmt::format(", {} cut off", human_number(r.truncated));
  const auto time = std::chrono::nanoseconds(static_cast<int64_t>(result.seconds * 1e9));
  std::cout << fmt::format("  {}, {}\n", counts, human_duration(time));
  if (comparison && (is_as_expected(*comparison, result.claim) || !comparison->met))
    std::cout << wrap(printable(in_words(*comparison)), width, 0, 2);
  if (!result.statistics.empty()) std::cout << figures_in_words(result, width);
  if (result.longest_look > 0)
    std::cout << wrap(
        fmt::format("step limit: {} for each execution, since one that was made first took {} (--max-steps)",
                    human_number(result.max_steps), human_number(result.longest_look)),
        width, 2, 4);
  if (result.resumed_tasks > 0)
    std::cout << fmt::format("went on from a saved search of {}\n",
                             plural(result.resumed_tasks, "execution"));
  std::cout << wrap(printable(result.claim.in_words()), width);
  if (result.compared.serial_orders > 0)
    std::cout << wrap(fmt::format("compared: results with those of {} of whole system calls",
                                  plural(result.compared.serial_orders, "serial order")),
                      width);
  for (const std::string& what : result.compared.not_compared)
    std::cout << wrap(printable("not compared: " + what), width);
  std::cout << unpinned_in_words(target.limits.unpinned_threads, output.full, width);
  // If nothing was left to execute, an early end has no effect.
  const std::string early = r.coverage.exhausted ? "" : early_end(r.end, output.state);
  if (!early.empty()) std::cout << wrap(early, width);
  if (const auto left = unfinished(result.findings); left > 0)
    std::cout << wrap(fmt::format("{}: {} kept, but not shrunk and replayed to the end",
                                  is_interrupted(result.findings) ? "interrupted" : "out of time",
                                  plural(static_cast<uint64_t>(left), "finding was", "findings were")),
                      width);
  for (const std::string& warning : warnings(result))
    std::cout << wrap(style.paint(Ink::Yellow, "warning:") + " " + printable(warning), width);
}

}  // namespace slalom
