// slalom detect: run detectors on a saved trace.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text/printable.h"
#include "campaign/expectation.h"
#include "cli/core/command.h"
#include "detect/detector_set.h"
#include "finding/finding_json.h"
#include "trace/files/trace_stream.h"

namespace slalom {
namespace {

struct DetectArguments {
  std::string file;
  std::string detectors;  // empty: those of the trace's target
  std::string fail_on;
  bool json = false;
};

// Rewrites one line on standard error, if that is a terminal, with how much of the file was read.
class ReadingLine {
 public:
  explicit ReadingLine(const std::string& file) : on_(is_terminal(STDERR_FILENO)) {
    std::error_code unknown;
    total_ = std::filesystem::file_size(file, unknown);
    if (unknown) total_ = 0;  // a pipe
  }
  ~ReadingLine() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }
  void show(uint64_t bytes) {
    if (!on_) return;
    shown_ = true;
    std::cerr << "\r\x1b[Kreading: " << human_number(bytes >> 20) << " MiB";
    if (total_ > 0) std::cerr << fmt::format(" ({} %)", std::min<uint64_t>(99, 100 * bytes / total_));
    std::cerr << std::flush;
  }

 private:
  const bool on_;
  uint64_t total_ = 0;
  bool shown_ = false;
};

// Returns why some of the chosen detectors cannot find everything in this trace, a clause each.
Result<std::vector<std::string>> not_recorded(const TraceInfo& info, const std::string& list) {
  std::vector<std::string> clauses;
  const auto add = [&](std::string_view detector, std::string_view what) {
    clauses.push_back(fmt::format("{} needs {}, which this trace does not have", detector, what));
  };
  for (const DetectorInfo& detector : detector_catalogue()) {
    TRY_ASSIGN(const bool chosen, selects(list, detector.name));
    if (!chosen) continue;
    const Facilities missing = detector.needs.without(info.recorded);
    if (missing.locks) add(detector.name, "locks");
    if (missing.memory) add(detector.name, "allocations");
    if (missing.accesses) add(detector.name, "all memory accesses");
  }
  return clauses;
}

nlohmann::ordered_json verdict_json(const Verdict& verdict, const Names& names) {
  nlohmann::ordered_json evidence = nlohmann::ordered_json::array();
  for (const Evidence& item : verdict.evidence)
    evidence.push_back({{"step", item.step.raw},
                        {"agent", names.agent(item.agent)},
                        {"place", names.place(item.pc)},
                        {"text", item.text}});
  return {{"title", verdict.title},
          {"kind", name(verdict.kind)},
          {"severity", name(verdict.severity)},
          {"detail", verdict.detail},
          {"evidence", evidence}};
}

void print_verdict(const Verdict& verdict, const Names& names, const Style& style, size_t width) {
  std::cout << style.paint(Ink::Red, printable(verdict.title)) << "\n";
  if (!verdict.detail.empty()) std::cout << wrap(printable_lines(verdict.detail), width, 2, 2);
  for (const Evidence& item : verdict.evidence)
    std::cout << wrap(
        printable(fmt::format("step {}, {} at {}: {}", item.step.raw,
                              item.agent ? names.agent(item.agent) : "-", names.place(item.pc), item.text)),
        width, 2, 4);
  std::cout << "\n";
}

Result<Exit> detect(const DetectArguments& arguments) {
  if (!arguments.fail_on.empty() && arguments.fail_on != "race")
    return error("--fail-on takes race, not \"{}\"", arguments.fail_on);
  TRY_ASSIGN(TraceReader trace, TraceReader::open(arguments.file));
  const TraceInfo& info = trace.info();
  std::string list = arguments.detectors;
  if (list.empty()) list = info.detectors;
  if (list.empty()) list = info.is_of_kernel() ? "kernel" : "default";
  TRY_ASSIGN(const std::unique_ptr<DetectorSet> detectors, select_detectors(trace.names(), list));
  TRY_ASSIGN(std::vector<std::string> unseen, not_recorded(info, list));
  if (!trace.has_names())
    unseen.emplace_back(
        "it is of an older version, which holds neither names (titles have numbers) nor what it is a trace "
        "of "
        "(for a kernel's, choose --detectors kernel)");

  TraceEnd end;
  {
    ReadingLine line(arguments.file);
    TRY_ASSIGN(end, trace.read_into(*detectors, [&](uint64_t bytes) { line.show(bytes); }));
  }
  if (!end.missing.empty()) unseen.insert(unseen.begin(), end.missing);
  std::vector<Verdict> verdicts;
  detectors->harvest(verdicts);

  const bool races_count = info.races_count || arguments.fail_on == "race";
  const bool found =
      std::ranges::any_of(verdicts, [&](const Verdict& verdict) { return counts(verdict, races_count); });
  if (arguments.json) {
    nlohmann::ordered_json json = {{"trace", arguments.file},         {"kind", info.kind},
                                   {"target", info.target},           {"detectors", list},
                                   {"accesses", end.accesses},        {"events", end.events},
                                   {"complete", end.missing.empty()}, {"not_seen", unseen}};
    json["verdicts"] = nlohmann::ordered_json::array();
    for (const Verdict& verdict : verdicts) json["verdicts"].push_back(verdict_json(verdict, trace.names()));
    std::cout << json_text(json);
    return found ? Exit::Findings : Exit::Clean;
  }
  const Style style = output_style();
  const size_t width = terminal_width();
  for (const Verdict& verdict : verdicts) print_verdict(verdict, trace.names(), style, width);
  const std::string count = verdicts.empty() ? style.paint(Ink::Green, "nothing found")
                                             : style.paint(Ink::Red, plural(verdicts.size(), "finding"));
  std::string sentence =
      fmt::format("{}: {} in {} and {} by {}", printable(info.target.empty() ? arguments.file : info.target),
                  count, plural(end.accesses, "access", "accesses"), plural(end.events, "event"), list);
  for (size_t i = 0; i < unseen.size(); ++i)
    sentence += fmt::format("{} {}", i == 0 ? ", but not everything was seen:" : ";", printable(unseen[i]));
  std::cout << wrap(sentence, width, 0, 2);
  return found ? Exit::Findings : Exit::Clean;
}

}  // namespace

void add_detect(CLI::App& app, Run& run) {
  auto a = std::make_shared<DetectArguments>();
  CLI::App* verb = app.add_subcommand("detect", "Look for bugs in a trace that --save-trace has written.");
  verb->add_option("TRACE", a->file, "the trace, of any size; a pipe will do")->required()->type_name("");
  verb->add_option("--detectors", a->detectors,
                   "what to look for, as in explore: names with commas between them, or default, all, kernel "
                   "(default: what a search of the trace's target looks for)")
      ->type_name("LIST");
  verb->add_option("--fail-on", a->fail_on, "race: data races of a kernel make the exit code 1, too")
      ->type_name("W");
  verb->add_flag("--json", a->json, "result as JSON on standard output (docs/formats.md)");
  verb->footer(
      "The detectors are those of a search, and see what they would have seen live.\n"
      "Exit code: 1 if something was found that counts, 0 if not.\n");
  verb->callback([a, &run] { run = [a] { return detect(*a); }; });
}

}  // namespace slalom
