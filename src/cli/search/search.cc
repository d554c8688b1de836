#include "cli/search/search.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "base/file.h"
#include "cli/search/progress_line.h"
#include "cli/search/search_output.h"
#include "detect/detector_set.h"
#include "finding/finding_json.h"
#include "trace/files/trace_stream.h"

namespace slalom {
namespace {

constexpr uint64_t kDefaultSamples = 10'000;  // for strategies that never end by themselves

// Compares the findings with those that the target's file expects; empty if it expects none in particular.
std::optional<Comparison> comparison_of(const Target& target, const CampaignResult& result,
                                        bool races_count) {
  if (!target.expected) return std::nullopt;
  std::vector<Verdict> verdicts;
  for (const auto& kept : result.findings) verdicts.push_back(kept.finding.verdict);
  return compare(*target.expected, verdicts, races_count);
}

// Repeats the first execution of the search, and saves its trace.
Result<void> save_first(const Target& target, const Job& job, const CampaignResult& result,
                        const std::string& path) {
  if (!result.first) return error("there is no trace to save in {}: no execution came to an end", path);
  Finding first;
  first.target = target.id;
  first.schedule = *result.first;
  first.policy = job.policy;
  first.max_steps = result.max_steps;
  const TraceInfo info{.kind = target.id.kind,
                       .target = target.id.name,
                       .detectors = target.defaults.detectors,
                       .races_count = target.defaults.races_count};
  std::unique_ptr<TraceWriter> writer;
  const MakeSink save = [&](const Names& names) -> Result<EventSink*> {
    TRY_ASSIGN(writer, TraceWriter::create(path, info, names));
    return writer.get();
  };
  TRY_ASSIGN(const Replay replay, replay_finding(target, first, job.policy, save));
  TRY(writer->close());
  if (replay.divergence)
    std::cerr << fmt::format("slalom: the trace in {} is not of the search's first execution: {}\n", path,
                             printable(*replay.divergence));
  return {};
}

}  // namespace

Result<Exit> run_search(const Target& target, SearchArguments arguments) {
  if (arguments.expect && !target.expected)
    return error("{} does not say what a search finds: give its file an [expect], or leave out --expect",
                 target.id.name);
  Job job;
  job.target = target.id;
  if (arguments.strategy.empty()) arguments.strategy = target.defaults.strategy;
  if (arguments.strategy.empty()) arguments.strategy = target.traits.yields ? "dfs" : "dpor";
  TRY_ASSIGN(job.strategy, parse_strategy(arguments.strategy, arguments.seed));
  // Within a scope slalom only guesses which flow waits, so it cannot predict sequences of operations.
  if (!target.limits.scope.empty() && job.strategy.name == "dpor" && job.strategy.settings.empty())
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
  campaign.races_count = target.defaults.races_count || arguments.fail_on == "race";
  if (!arguments.prove.empty() && arguments.prove != "failures" && arguments.prove != "all")
    return error("--prove takes failures or all, not \"{}\"", arguments.prove);
  const bool all = arguments.prove.empty() ? target.defaults.proves_all || arguments.fail_on == "race"
                                           : arguments.prove == "all";
  campaign.prove = all ? CampaignOptions::Prove::All : CampaignOptions::Prove::Failures;
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

  std::string unsigned_because;
  if (!campaign.store.empty()) {
    if (Result<SigningKey> key = SigningKey::load_or_make(); key.ok())
      campaign.key = std::make_shared<const SigningKey>(*key);
    else if (target.traits.needs_consent)
      unsigned_because = key.error().message;
  }

  watch_interrupt("stopping; keeping what was found");
  campaign.stop = interrupted;
  ProgressLine line;
  const auto progress = [&](const Progress& p) {
    line.show(p);
    return !interrupted();
  };
  TRY_ASSIGN(const CampaignResult result, run_campaign(target, job, campaign, progress));
  line.clear();
  const std::optional<Comparison> comparison = comparison_of(target, result, campaign.races_count);
  if (arguments.json)
    std::cout << json_text(search_json(target, job, result, comparison));
  else
    print_search(target, job, result, comparison, {arguments.full, campaign.state});
  std::cout << std::flush;
  if (!unsigned_because.empty() && !result.findings.empty())
    std::cerr << fmt::format("slalom: the capsules are not signed, so slalom replay asks for --trust: {}\n",
                             printable(unsigned_because));
  // Files are written last, so that the results are shown even if writing fails.
  if (!arguments.junit.empty()) {
    const std::string xml =
        search_junit(target, result, campaign.races_count, arguments.expect ? comparison : std::nullopt);
    TRY(write_output(arguments.junit, xml));
  }
  if (!arguments.save_trace.empty())
    if (const Result<void> saved = save_first(target, job, result, arguments.save_trace); !saved.ok())
      return saved.error();
  if (result.unkept) return *result.unkept;
  const bool found = (arguments.expect && !comparison->found.empty()) ||
                     std::ranges::any_of(result.findings, [&](const auto& kept) {
                       return counts(kept.finding.verdict, campaign.races_count);
                     });
  switch (conclude(result.claim, found, arguments.expect ? std::optional(comparison->met) : std::nullopt)) {
    case Conclusion::NothingFound:
      return Exit::Clean;
    case Conclusion::Found:
      return Exit::Findings;
    case Conclusion::NothingExecuted:
      return error("{}", result.claim.no_end);
  }
  return Exit::Internal;
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
  verb.add_option(
          "--strategy", a.strategy,
          fmt::format("how to search; see below (default: {})",
                      a.strategy.empty() ? "of a kernel test pos; of a toy program dpor, dfs if it yields"
                                         : a.strategy))
      ->type_name("S");
  verb.add_option("--seed", a.seed, "of the strategies that sample")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(0));
  verb.add_option("--schedules", a.campaign.schedules,
                  "stop after so many executions (default where a strategy never ends by itself: 10000)")
      ->type_name("N")
      ->check(whole_number(1));
  verb.add_option("--time", a.time,
                  "end after this long, with what was found shrunk and replayed: 30s, 5m, 2h")
      ->type_name("T");
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
  verb.add_option(
          "--prove", a.prove,
          "what to shrink and replay: failures, or all (default for toy programs, and with --fail-on race)")
      ->type_name("W");
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
  verb.add_option("--save-trace", a.save_trace,
                  "write the trace of the first execution to a file, for slalom trace and slalom detect")
      ->type_name("FILE");
  verb.add_flag("--json", a.json, "results as JSON on standard output (docs/formats.md)");
}

}  // namespace slalom
