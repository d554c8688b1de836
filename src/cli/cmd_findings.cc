// slalom findings: what is kept in a folder of findings.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
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
  TRY_ASSIGN(const FindingStore store, FindingStore::open(folder));
  TRY_ASSIGN(const auto entries, store.list());
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  Table table(
      {{"kind", {}}, {"target", {}}, {"switches", Table::Align::Right}, {"title", {}}, {"capsule", {}}});
  for (const StoredFinding& entry : entries) {
    const std::string capsule = (entry.directory / "capsule.slalom").string();
    if (!entry.finding.ok()) {
      std::cerr << "slalom: " << entry.finding.error().message << "\n";
      continue;
    }
    const Finding& finding = *entry.finding;
    all.push_back(finding_json(finding, capsule));
    table.add({std::string(name(finding.verdict.kind)), finding.target.name,
               std::to_string(finding.schedule.switches.size()), printable(finding.verdict.title), capsule});
  }
  if (json)
    std::cout << json_text(all);
  else if (entries.empty())
    std::cout << folder << ": no findings\n";
  else
    std::cout << table.text(output_style());
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
