// slalom findings: lists the findings in a folder.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/core/command.h"
#include "finding/finding_json.h"
#include "finding/store.h"

namespace slalom {
namespace {

Result<Exit> list(const std::string& folder, bool json) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    return error(
        "there is no folder {}; slalom explore makes it when it finds something, or give another one",
        folder);
  TRY_ASSIGN(const auto entries, list_findings(folder));
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::vector<std::pair<Finding, std::string>> readable;
  for (const StoredFinding& entry : entries) {
    const std::string capsule = (entry.directory / "capsule.slalom").string();
    if (entry.finding.ok())
      readable.emplace_back(*entry.finding, capsule);
    else
      std::cerr << "slalom: " << printable(entry.finding.error().message) << "\n";
  }
  std::stable_sort(readable.begin(), readable.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.verdict.severity, a.first.target.name, a.first.verdict.title) <
           std::tie(b.first.verdict.severity, b.first.target.name, b.first.verdict.title);
  });
  if (!json)
    std::cout << printable(folder) << ": "
              << (entries.empty() ? "no findings" : plural(entries.size(), "finding")) << "\n";
  for (const auto& [finding, capsule] : readable) {
    all.push_back(finding_json(finding, capsule));
    if (!json) std::cout << "\n" << brief(finding, capsule, output_style());
  }
  if (json) std::cout << json_text(all);
  return entries.empty() ? Exit::Clean : Exit::Findings;
}

}  // namespace

void add_findings(CLI::App& app, Run& run) {
  struct Arguments {
    std::string folder = "slalom-findings";
    bool json = false;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("findings", "List the findings kept in a folder.");
  verb->add_option("DIR", a->folder, "the folder")->capture_default_str()->type_name("");
  verb->add_flag("--json", a->json, "as JSON on standard output (docs/formats.md)");
  verb->callback([a, &run] { run = [a] { return list(a->folder, a->json); }; });
}

}  // namespace slalom
