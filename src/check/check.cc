// The public face: slalom::check() and slalom::expect().
#include <slalom/check.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "campaign/campaign.h"
#include "check/check_machine.h"
#include "check/heap.h"
#include "check/rehearsal.h"
#include "check/watchdog.h"
#include "finding/capsule.h"
#include "learn/conflicts.h"
#include "preload/runtime/runtime.h"
#include "process/uncontrolled.h"
#include "report/core/summary.h"

namespace slalom {
namespace {

using checking::CheckMachine;

constexpr const char* kSpurious = "spurious";  // its name in capsules
constexpr unsigned long long kMostSpurious = UINT32_MAX;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == 0 ? nullptr : value;
}

// The environment takes precedence, so that a test can be run with other options without a rebuild.
CheckOptions with_environment(CheckOptions options) {
  if (const char* text = variable("SLALOM_REPLAY")) options.replay = text;
  if (const char* text = variable("SLALOM_STRATEGY")) options.strategy = text;
  if (const char* text = variable("SLALOM_SCHEDULES")) options.schedules = std::strtoull(text, nullptr, 10);
  if (const char* text = variable("SLALOM_SECONDS")) options.seconds = std::strtod(text, nullptr);
  if (const char* text = variable("SLALOM_SEED")) options.seed = std::strtoull(text, nullptr, 10);
  if (const char* text = variable("SLALOM_SPURIOUS"))
    options.spurious = static_cast<uint32_t>(std::min(std::strtoull(text, nullptr, 10), kMostSpurious));
  if (const char* text = variable("SLALOM_FINDINGS")) options.findings = text;
  return options;
}

// One check: opens the process at its start and closes it at its end.
class Session {
 public:
  Session(CheckOptions options, const std::function<void()>& body)
      : options_(std::move(options)), refused_(checking::in_process().open(body)) {
    if (!refused_.empty()) return;
    modules().describe(checking::in_process().channel());
    modules().names()->forget_agents();
    checking::start_watchdog(options_.patience);
  }
  ~Session() {
    if (!refused_.empty()) return;
    checking::stop_watchdog();
    checking::in_process().close();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<CheckResult> run() {
    if (!refused_.empty()) return error("{}", refused_);
    Target target;
    std::vector<std::pair<std::string, int64_t>> params;
    if (options_.spurious > 0) params.emplace_back(kSpurious, options_.spurious);
    target.id = make_target("check", options_.name, modules().program(), std::move(params));
    checking::in_process().channel().spurious = options_.spurious;
    target.make_machine = [](const MachineUse&) -> Result<std::unique_ptr<Machine>> {
      return std::unique_ptr<Machine>(std::make_unique<CheckMachine>(checking::in_process(), modules()));
    };
    target.traits.yields = true;
    target.traits.learns = options_.choices == CheckOptions::Choices::Sync;
    target.make_learner = [](bool atomics) { return std::make_unique<ConflictLearner>(atomics); };
    target.reports.sight = [] {
      Sight sight = modules().names()->sight();
      sight.libraries.clear();  // slalom's own libraries are among them
      return sight;
    };
    target.reports.uncontrolled = [] { return uncontrolled_in_words(checking::in_process().uncontrolled()); };
    target.traits.most_places = preload::kMostPlaces;
    target.words.more_steps = "CheckOptions::max_steps";
    target.words.everywhere = "Choices::Everywhere";
    target.words.replay_command = [this](const std::string& capsule) {
      return fmt::format("SLALOM_REPLAY={} {}", capsule, modules().program());
    };
    if (!options_.replay.empty()) return replay(target);
    return search(target);
  }

 private:
  // The modules at the first check of the process. Slalom does not treat modules that are loaded later as the
  // user's.
  static const checking::Modules& modules() {
    static const checking::Modules the_modules;
    return the_modules;
  }

  TextOptions text_options() const {
    TextOptions text;
    text.colour = isatty(STDERR_FILENO) != 0 && variable("NO_COLOR") == nullptr;
    text.ascii = isatty(STDERR_FILENO) == 0;
    return text;
  }

  Inputs inputs() const {
    Inputs inputs;
    inputs.max_steps = options_.max_steps;
    if (options_.choices == CheckOptions::Choices::Sync) inputs.policy.where = ChoicePolicy::Where::Sync;
    return inputs;
  }

  // The first execution does the process's one-time initialisations and is ignored. The next two are
  // compared.
  std::string rehearse() const {
    CheckMachine machine(checking::in_process(), modules());
    checking::heap().set_on(false);
    checking::heap().begin_keeping();
    checking::rehearse(machine, inputs());
    checking::heap().end_keeping();
    checking::heap().set_on(true);
    const EventSequence first = checking::rehearse(machine, inputs());
    const EventSequence second = checking::rehearse(machine, inputs());
    return checking::advice(first, second, machine.names());
  }

  Result<CheckResult> search(const Target& target) const {
    Job job;
    job.target = target.id;
    TRY_ASSIGN(job.strategy, parse_strategy(options_.strategy, options_.seed));
    // Equal happens-before hashes mean equal states only if all accesses are seen.
    if (job.strategy.name == "portfolio" && job.strategy.settings.empty() &&
        target.reports.sight().extent == Sight::Extent::Everything)
      job.strategy.settings.emplace_back("cache", "");
    job.policy = inputs().policy;
    job.max_steps = options_.max_steps;
    job.detectors = "failure,deadlock,lost-wakeup,heap";
    if (options_.races) job.detectors += ",race";
    if (options_.weak_memory) job.detectors += ",weak-memory";
    if (options_.leaks) job.detectors += ",leak";
    CampaignOptions campaign;
    campaign.schedules = options_.schedules;
    campaign.seconds = options_.seconds;
    campaign.store = options_.findings;
    campaign.until = ExploreOptions::Until::FirstFailure;
    if (options_.run_twice) campaign.verify = ExploreOptions::Verify::RunTwice;
    campaign.report = text_options();
    const std::string differs = rehearse();
    const auto go_on = [](const Progress&) { return true; };
    TRY_ASSIGN(CampaignResult found, run_campaign(target, job, campaign, go_on));
    // The livelock detector costs a tenth of the time, so it runs only if some execution did not end.
    if (found.explored.truncated > 0 && found.findings.empty()) {
      job.detectors += ",livelock";
      TRY_ASSIGN(found, run_campaign(target, job, campaign, go_on));
    }
    CheckResult result;
    result.executions = found.explored.executions + found.explored.truncated;
    result.interleavings = found.explored.classes;
    result.exhausted = found.claim.exhausted;
    for (const Caveat& caveat : found.claim.caveats)
      result.caveats.push_back({std::string(name(caveat.kind)), caveat.text});
    result.seconds = found.seconds;
    for (const CampaignResult::Kept& kept : found.findings) {
      result.findings.push_back({kept.finding.verdict.title, std::string(name(kept.finding.verdict.kind)),
                                 kept.capsule.string(), kept.report});
      result.report += kept.report + "\n";
    }
    if (!differs.empty()) result.warnings.push_back(differs);
    for (const std::string& trouble : found.explored.trouble) result.warnings.push_back(trouble);
    for (const UncontrolledAct& act : found.uncontrolled) result.warnings.push_back(act.text);
    if (conclude(found.claim, !found.findings.empty(), std::nullopt) == Conclusion::NothingExecuted)
      result.warnings.push_back(found.claim.no_end);
    result.ok = result.findings.empty() && result.warnings.empty();
    result.report +=
        fmt::format("{}: {} in {} by {}\n{}\n", options_.name,
                    !found.findings.empty()      ? plural(found.findings.size(), "finding")
                    : found.claim.no_end.empty() ? "nothing found"
                                                 : "nothing reached its end",
                    plural(result.executions, "execution"), to_text(job.strategy), found.claim.in_words());
    for (const std::string& warning : result.warnings)
      result.report += "warning: " + printable_lines(warning) + "\n";
    return result;
  }

  Result<CheckResult> replay(const Target& target) const {
    TRY_ASSIGN(Finding finding, load_capsule(options_.replay));
    CheckResult result;
    if (finding.target.kind != "check")
      return error("{} is no capsule of a slalom::check; try: slalom replay {}", options_.replay,
                   options_.replay);
    if (finding.target.name != options_.name) {
      result.ok = true;
      result.report = fmt::format("{}: skipped, since {} is of {}\n", options_.name, options_.replay,
                                  finding.target.name);
      return result;
    }
    uint32_t& spurious = checking::in_process().channel().spurious;  // as when the finding was made
    spurious = 0;
    for (const auto& [key, value] : finding.target.params)
      if (key == kSpurious && value > 0 && value <= static_cast<int64_t>(kMostSpurious))
        spurious = static_cast<uint32_t>(value);
    finding.schedule.digest = 0;  // it depends on addresses that differ between processes
    rehearse();
    TraceLog log;
    TRY_ASSIGN(const Replay replay, replay_finding(target, finding, finding.policy, &log));
    result.executions = 1;
    if (!replay.same()) {
      result.report =
          fmt::format("{}: NOT the same: {}\n  expected: {}\n", options_.name,
                      replay.divergence ? *replay.divergence
                                        : "the bug does not show; is this the program that it was found in?",
                      finding.verdict.title);
      return result;
    }
    finding.verdict = *replay.verdict;
    TextOptions text = text_options();
    text.switch_kinds = switch_kinds(replay.execution);
    const std::unique_ptr<Machine> machine = *target.make_machine({});
    const std::string report = text_report(finding, log, machine->names(), text);
    result.findings.push_back(
        {finding.verdict.title, std::string(name(finding.verdict.kind)), options_.replay, report});
    result.report = report + "\nthe same again\n";
    return result;
  }

  CheckOptions options_;
  std::string refused_;
};

}  // namespace

#define SLALOM_PUBLIC __attribute__((visibility("default")))

SLALOM_PUBLIC CheckResult check(const CheckOptions& wanted, const std::function<void()>& body,
                                const char* file, int line) {
  CheckOptions options = with_environment(wanted);
  if (options.name.empty())
    options.name = fmt::format("{}:{}", std::filesystem::path(file).filename().string(), line);
  const std::string name = options.name;
  Result<CheckResult> result = [&]() -> Result<CheckResult> {
    try {
      return Session(std::move(options), body).run();
    } catch (const std::bad_alloc&) {
      return error("out of memory: raise the limit (ulimit -v), or check less at once");
    }
  }();
  if (result.ok()) return *std::move(result);
  CheckResult failed;
  failed.report = fmt::format("{}: slalom: {}\n", name, printable_lines(result.error().message));
  failed.warnings.push_back(result.error().message);
  return failed;
}

SLALOM_PUBLIC CheckResult check(const std::function<void()>& body, const char* file, int line) {
  return check(CheckOptions{}, body, file, line);
}

SLALOM_PUBLIC void expect(bool condition, const char* what) {
  if (condition) return;
  if (preload::runtime().controls())
    preload::runtime().fail(preload::Ending::Kind::Assertion, SLALOM_PLACE(), what);
  std::fprintf(stderr, "slalom::expect: %s\n", what);
  std::abort();
}

}  // namespace slalom
