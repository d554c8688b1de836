#include "cli/search.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "cli/search_figures.h"
#include "detect/detector_set.h"
#include "finding/finding_json.h"
#include "report/junit.h"

namespace slalom {
namespace {

constexpr uint64_t kDefaultSamples = 10'000;  // of a strategy that never ends by itself
constexpr size_t kReportsShown = 3;

// One line that is rewritten in place, on a terminal only.
class ProgressLine {
 public:
  ProgressLine() : on_(is_terminal(STDERR_FILENO)) {}
  ~ProgressLine() { clear(); }
  void show(const Progress& progress) {
    if (!on_) return;
    const ExploreResult& r = progress.result;
    std::string line = fmt::format("  {} executions", human_number(r.executions + r.truncated));
    if (!r.found.empty()) line += fmt::format(", {}", plural(r.found.size(), "finding"));
    const bool searching = progress.doing == Progress::Doing::Searching;
    if (!searching) line += finishing(progress);
    const double total = progress.coverage.estimated_total;
    if (searching && total > 0 && progress.seconds > 0) {
      const double done = static_cast<double>(r.tasks);
      line += fmt::format(", about {} in all ({:.0f} %", human_number(static_cast<uint64_t>(total)),
                          std::min(99.0, 100 * done / total));
      const double left = progress.seconds * (total - done) / std::max(done, 1.0);
      line +=
          fmt::format(", {} left)",
                      human_duration(std::chrono::seconds(static_cast<int64_t>(std::clamp(left, 1.0, 1e8)))));
    }
    if (searching && progress.seconds > 0)
      line += fmt::format(
          ", {}/s", human_number(static_cast<uint64_t>(static_cast<double>(r.tasks) / progress.seconds)));
    std::cerr << "\r\033[K" << fit(line, terminal_width(STDERR_FILENO) - 1) << std::flush;
    shown_ = true;
  }
  void clear() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
    shown_ = false;
  }

 private:
  static std::string finishing(const Progress& progress) {
    const std::string which =
        progress.result.found.size() == 1 ? "it" : fmt::format("the {}", ordinal(progress.finding + 1));
    return progress.doing == Progress::Doing::Shrinking
               ? fmt::format(": shrinking {}", which)
               : fmt::format(": replaying {} for the {} time", which, ordinal(progress.replays + 1));
  }

  bool on_;
  bool shown_ = false;
};

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

auto unfinished(const std::vector<CampaignResult::Kept>& findings) {
  return std::ranges::count_if(findings, [](const auto& kept) { return kept.interrupted; });
}

// How what was found compares with what the target's file expects; none: it expects nothing in particular.
std::optional<Comparison> comparison_of(const Target& target, const CampaignResult& result,
                                        bool races_count) {
  if (!target.expected) return std::nullopt;
  std::vector<Verdict> verdicts;
  for (const auto& kept : result.findings) verdicts.push_back(kept.finding.verdict);
  return compare(*target.expected, verdicts, races_count);
}

nlohmann::ordered_json to_json(const Target& target, const Job& job, const CampaignResult& result,
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
  json["exhausted"] = r.coverage.exhausted;
  json["end"] = end_name(r.end);
  json["coverage"] = {{"statement", r.coverage.statement}, {"bound", r.coverage.bound}};
  if (r.coverage.completed) json["coverage"]["completed"] = *r.coverage.completed;
  if (r.coverage.estimated_total > 0) json["coverage"]["estimated_total"] = r.coverage.estimated_total;
  json["steps"] = r.steps;
  json["choice_points"] = r.choice_points;
  json["seconds"] = result.seconds;
  if (!result.statistics.empty()) {
    json["search_cpu_seconds"] = result.search_cpu_seconds;
    json["statistics"] = nlohmann::ordered_json::object();
    for (const auto& [name, value] : result.statistics) json["statistics"][name] = value;
    json["communication_points"] = result.communication_points;
  }
  if (!target.unpinned_threads.empty()) json["unpinned_threads"] = target.unpinned_threads;
  if (!target.not_compared.empty()) json["not_compared"] = target.not_compared;
  if (target.uncontrolled) json["uncontrolled"] = target.uncontrolled();
  json["resumed"] = result.resumed_tasks;
  json["findings"] = nlohmann::ordered_json::array();
  for (const auto& kept : result.findings)
    json["findings"].push_back(finding_json(kept.finding, kept.capsule.string()));
  json["unfinished"] = unfinished(result.findings);
  if (comparison)
    json["expected"] = {{"met", comparison->met},
                        {"found", comparison->found},
                        {"missing", comparison->missing},
                        {"unexpected", comparison->unexpected}};
  json["trouble"] = r.trouble;
  return json;
}

std::vector<std::string> warnings(const Target& target, const ExploreResult& result) {
  std::vector<std::string> all = result.trouble;
  if (target.uncontrolled)
    for (std::string& words : target.uncontrolled()) all.push_back(std::move(words));
  return all;
}

// For build servers. What counts is what the exit code says: by itself, or only where it is not expected.
std::string to_junit(const Target& target, const CampaignResult& result, bool races_count,
                     const std::optional<Comparison>& comparison) {
  const ExploreResult& r = result.explored;
  JunitSuite suite{target.id.name, result.seconds, {}, {}};
  JunitCase search{.name = "search"};
  if (r.end == ExploreResult::End::Failed)
    search = {"search", JunitCase::Result::Error, "error", r.trouble.front(), r.trouble.front()};
  else if (comparison && !comparison->met && comparison->unexpected.empty())
    search = {"search", JunitCase::Result::Failed, "expect", in_words(*comparison), in_words(*comparison)};
  suite.cases.push_back(search);
  for (const auto& kept : result.findings) {
    const Verdict& verdict = kept.finding.verdict;
    const bool fails = counts(verdict, races_count) && !(comparison && target.expected->lists(verdict));
    suite.cases.push_back({verdict.title, fails ? JunitCase::Result::Failed : JunitCase::Result::Passed,
                           std::string(name(verdict.kind)), verdict.title, kept.report});
  }
  suite.output = fmt::format("{}\n{}: {}\n", plural(r.executions + r.truncated, "execution"),
                             r.coverage.exhausted ? "exhausted" : "covered", r.coverage.statement);
  for (const std::string& what : target.not_compared) suite.output += "not compared: " + what + "\n";
  for (const std::string& warning : warnings(target, r)) suite.output += "warning: " + warning + "\n";
  return junit_xml(suite);
}

// Whole reports of the worst that was found, short ones of the rest.
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

// Why the search ended early, and how to go on; empty if it did not.
std::string early_end(ExploreResult::End end, const std::filesystem::path& state) {
  switch (end) {
    case ExploreResult::End::SpaceExplored:
    case ExploreResult::End::ScheduleLimit:  // the number of executions says it
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
  return wrap(fmt::format("not controlled: when {} of the kernel {}, which cannot be pinned to a CPU: {}",
                          plural(threads.size(), "thread"), threads.size() == 1 ? "runs" : "run", names),
              width);
}

void print_text(const Target& target, const Job& job, const CampaignResult& result,
                const std::optional<Comparison>& comparison, const SearchArguments& arguments) {
  const Style style = output_style();
  const size_t width = terminal_width();
  const ExploreResult& r = result.explored;
  print_findings(result.findings, arguments.full);

  const bool failed = r.end == ExploreResult::End::Failed;
  const std::string found = !result.findings.empty() ? style.paint(Ink::Red, how_many(result.findings))
                            : failed                 ? style.paint(Ink::Red, "nothing could be executed")
                                                     : style.paint(Ink::Green, "nothing found");
  std::cout << wrap(fmt::format("{}: {} in {} by {}", printable(target.id.name), found,
                                plural(r.executions + r.truncated, "execution"), to_text(job.strategy)),
                    width, 0, 2);
  std::string counts = plural(r.classes, "distinct interleaving");
  if (r.blocked > 0) counts += fmt::format(", {} abandoned", human_number(r.blocked));
  if (r.truncated > 0) counts += fmt::format(", {} cut off", human_number(r.truncated));
  const auto time = std::chrono::nanoseconds(static_cast<int64_t>(result.seconds * 1e9));
  std::cout << fmt::format("  {}, {}\n", counts, human_duration(time));
  if (comparison) std::cout << wrap(printable(in_words(*comparison)), width, 0, 2);
  if (!result.statistics.empty()) std::cout << figures_in_words(result, width);
  if (result.resumed_tasks > 0)
    std::cout << fmt::format("went on from a saved search of {}\n",
                             plural(result.resumed_tasks, "execution"));
  const std::string_view exhausted = target.scope.empty() ? "exhausted: " : "exhausted within scope: ";
  std::cout << wrap(std::string(r.coverage.exhausted ? exhausted : "covered: ") + r.coverage.statement,
                    width);
  if (r.truncated > 0)
    std::cout << wrap(fmt::format("not covered: what comes after {} steps", human_number(job.max_steps)),
                      width);
  for (const std::string& what : target.not_compared)
    std::cout << wrap(printable("not compared: " + what), width);
  std::cout << unpinned_in_words(target.unpinned_threads, arguments.full, width);
  const std::string early = early_end(r.end, arguments.campaign.state);
  if (!early.empty()) std::cout << wrap(early, width);
  if (const auto left = unfinished(result.findings); left > 0)
    std::cout << wrap(fmt::format("interrupted: {} kept, but not shrunk and replayed to the end",
                                  plural(static_cast<uint64_t>(left), "finding was", "findings were")),
                      width);
  for (const std::string& warning : warnings(target, r))
    std::cout << wrap(style.paint(Ink::Yellow, "warning:") + " " + warning, width);
}

}  // namespace

Result<Exit> run_search(const Target& target, SearchArguments arguments) {
  if (arguments.expect && !target.expected)
    return error("{} does not say what a search finds: give its file an [expect], or leave out --expect",
                 target.id.name);
  Job job;
  job.target = target.id;
  if (arguments.strategy.empty()) arguments.strategy = target.strategy;
  if (arguments.strategy.empty()) arguments.strategy = target.yields ? "dfs" : "dpor";
  TRY_ASSIGN(job.strategy, parse_strategy(arguments.strategy, arguments.seed));
  // Who waits within a scope is guessed, so no sequence of operations can be foreseen.
  if (!target.scope.empty() && job.strategy.name == "dpor" && job.strategy.settings.empty())
    job.strategy.settings.emplace_back("coarse", "");
  TRY_ASSIGN(job.policy, parse_choices(arguments.choices));
  job.max_steps = arguments.max_steps;
  job.detectors = arguments.detectors;

  CampaignOptions& campaign = arguments.campaign;
  if (!arguments.time.empty()) {
    TRY_ASSIGN(campaign.seconds, parse_duration(arguments.time));
  }
  bool exhaustive = false;
  for (const StrategyInfo& info : strategy_catalogue())
    if (info.name == job.strategy.name) exhaustive = info.exhaustive;
  if (campaign.schedules == 0 && campaign.seconds == 0 && !exhaustive) campaign.schedules = kDefaultSamples;
  if (!arguments.fail_on.empty() && arguments.fail_on != "race")
    return error("--fail-on takes race, not \"{}\"", arguments.fail_on);
  campaign.races_count = target.races_count || arguments.fail_on == "race";
  campaign.shrink = !arguments.no_shrink;
  campaign.checkpoints = !arguments.no_checkpoints;
  if (arguments.run_twice) campaign.verify = ExploreOptions::Verify::RunTwice;
  if (arguments.first)
    campaign.until = arguments.fail_on == "race" ? ExploreOptions::Until::FirstFailureOrRace
                                                 : ExploreOptions::Until::FirstFailure;
  campaign.report.width = terminal_width();
  campaign.report.colour = !arguments.json && arguments.junit.empty() && output_style().on;
  campaign.report.ascii = !is_terminal(STDOUT_FILENO);
  if (arguments.full) campaign.report.detail = TextOptions::Detail::Everything;

  watch_interrupt();
  campaign.stop = interrupted;
  ProgressLine line;
  const auto progress = [&](const Progress& p) {
    line.show(p);
    return !interrupted();
  };
  TRY_ASSIGN(const CampaignResult result, run_campaign(target, job, campaign, progress));
  line.clear();
  const std::optional<Comparison> comparison = comparison_of(target, result, campaign.races_count);
  if (!arguments.junit.empty()) {
    const std::string xml =
        to_junit(target, result, campaign.races_count, arguments.expect ? comparison : std::nullopt);
    TRY(write_file(arguments.junit, std::string_view(xml)));
  }
  if (arguments.json)
    std::cout << json_text(to_json(target, job, result, comparison));
  else
    print_text(target, job, result, comparison, arguments);
  if (result.explored.end == ExploreResult::End::Failed) return error("{}", result.explored.trouble.front());
  if (arguments.expect) return comparison->met ? Exit::Clean : Exit::Findings;
  const bool found = std::ranges::any_of(
      result.findings, [&](const auto& kept) { return counts(kept.finding.verdict, campaign.races_count); });
  return found ? Exit::Findings : Exit::Clean;
}

std::string search_catalogues() {
  std::vector<std::pair<std::string, std::string>> strategies, detectors;
  for (const StrategyInfo& info : strategy_catalogue())
    strategies.emplace_back(
        info.name,
        fmt::format("{}{}{}", info.about, info.settings.empty() ? "" : "\nsettings: ", info.settings));
  for (const DetectorInfo& info : detector_catalogue())
    detectors.emplace_back(info.name,
                           fmt::format("{}{}", info.about, info.by_default ? "" : " (off by default)"));
  return "Strategies, for --strategy NAME or NAME:SETTING,SETTING...\n" + help_list(strategies) +
         "\nDetectors, for --detectors NAME,NAME...; also: default, all, kernel\n" + help_list(detectors);
}

void add_search_options(CLI::App& verb, SearchArguments& a) {
  a.campaign.workers = std::max(1u, std::thread::hardware_concurrency());
  verb.add_option("--strategy", a.strategy,
                  fmt::format("how to search; see below (default: {})",
                              a.strategy.empty() ? "dpor; dfs if the program yields" : a.strategy))
      ->type_name("S");
  verb.add_option("--seed", a.seed, "of the strategies that sample")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(0));
  verb.add_option("--schedules", a.campaign.schedules,
                  "stop after so many executions (default where a strategy never ends by itself: 10000)")
      ->type_name("N")
      ->check(whole_number(1));
  verb.add_option("--time", a.time, "stop after this long: 30s, 5m, 2h")->type_name("T");
  verb.add_option("--workers", a.campaign.workers, "executions at the same time")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1, 256));
  verb.add_option("--choices", a.choices,
                  "where to switch: everywhere, sync, nowhere (only where agents block)")
      ->capture_default_str()
      ->type_name("W");
  verb.add_option("--max-steps", a.max_steps, "of one execution")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1));
  verb.add_option("--detectors", a.detectors, "what to look for; see below")
      ->capture_default_str()
      ->type_name("D");
  verb.add_option("--fail-on", a.fail_on, "race: data races of a kernel are failures, too")->type_name("W");
  verb.add_option("--out", a.campaign.store, "folder for findings; \"\" keeps none")
      ->capture_default_str()
      ->type_name("DIR");
  verb.add_option("--state", a.campaign.state, "save the search here as it runs; go on from it if it exists")
      ->type_name("FILE");
  if (!a.first) verb.add_flag("--first", a.first, "stop at the first failure");
  verb.add_flag("--no-shrink", a.no_shrink, "keep schedules as they were found");
  verb.add_flag("--no-checkpoints", a.no_checkpoints, "run every execution from the beginning");
  verb.add_flag("--run-twice", a.run_twice, "run every execution twice and compare");
  verb.add_flag("--full", a.full, "all reports, and all operations in them");
  verb.add_option("--junit", a.junit, "also write the results as JUnit XML, for build servers")
      ->type_name("FILE");
  verb.add_flag("--json", a.json, "results as JSON on standard output (docs/formats.md)");
}

}  // namespace slalom
