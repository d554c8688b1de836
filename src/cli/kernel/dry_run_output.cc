#include "cli/kernel/dry_run_output.h"

#include <algorithm>
#include <iostream>

#include "report/core/summary.h"

namespace slalom {
namespace {

constexpr size_t kMostCallWidth = 72;  // longer calls push their result to the right

std::string calls_text(const KernelDryRun::Flow& flow) {
  std::string text;
  size_t widest = 0;
  for (const auto& call : flow.calls)
    widest = std::max(widest, std::min(kMostCallWidth, display_width(printable(call.text))));
  for (const auto& call : flow.calls) {
    const std::string line = call.line == 0 ? "" : fmt::format("{}", call.line);
    text += fmt::format("{}  {}  {}{}\n", pad_left(line, 4), pad(printable(call.text), widest),
                        call.result.empty() ? "does not return" : "= " + call.result,
                        call.waited && !call.result.empty() ? ", after another flow has run" : "");
  }
  return text;
}

nlohmann::ordered_json calls_json(const KernelDryRun::Flow& flow) {
  nlohmann::ordered_json calls = nlohmann::ordered_json::array();
  for (const auto& call : flow.calls)
    calls.push_back(
        {{"line", call.line}, {"text", call.text}, {"result", call.result}, {"waited", call.waited}});
  return calls;
}

}  // namespace

std::string dry_run_text(const std::string& target, const KernelDryRun& run, size_t width) {
  std::string text = wrap(
      fmt::format("{}: {}, one after the other", printable(target), plural(run.flows.size(), "flow")), width);
  for (const KernelDryRun::Flow& flow : run.prepared)
    text += fmt::format("\nprepared for {}:\n{}", printable(flow.name), calls_text(flow));
  for (const KernelDryRun::Flow& flow : run.flows)
    text += fmt::format("\n{}: {}, {}\n{}", printable(flow.name), plural(flow.instructions, "instruction"),
                        plural(flow.choice_points, "choice point"), calls_text(flow));
  if (!run.ended.empty()) text += "\n" + wrap("ended early: " + printable(run.ended), width);
  return text;
}

nlohmann::ordered_json dry_run_json(const std::string& target, const KernelDryRun& run) {
  nlohmann::ordered_json json;
  json["target"] = target;
  json["prepared"] = nlohmann::ordered_json::array();
  for (const KernelDryRun::Flow& flow : run.prepared)
    json["prepared"].push_back({{"name", flow.name}, {"calls", calls_json(flow)}});
  json["flows"] = nlohmann::ordered_json::array();
  for (const KernelDryRun::Flow& flow : run.flows)
    json["flows"].push_back({{"name", flow.name},
                             {"instructions", flow.instructions},
                             {"choice_points", flow.choice_points},
                             {"calls", calls_json(flow)}});
  json["ended"] = run.ended;
  json["warnings"] = run.warnings;
  return json;
}

void print_warnings(const KernelDryRun& run) {
  for (const std::string& warning : run.warnings)
    std::cerr << fmt::format("slalom: warning: {}\n", printable(warning));
}

}  // namespace slalom
