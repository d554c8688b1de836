// The search of the verbs that search: their common options, and the search itself. Each verb opens its own
// target. search_output.h shows the results.
#pragma once

#include <string>

#include "campaign/campaign.h"
#include "cli/core/command.h"

namespace slalom {

struct SearchArguments {
  std::string strategy;  // if empty, dpor, or dfs for a target that waits by yielding
  uint64_t seed = 1;
  std::string choices = "everywhere";
  uint64_t max_steps = 20'000;
  std::string detectors = "default";
  std::string time;
  std::string junit, save_trace;  // files to write; empty for none
  std::string fail_on;            // "race": races fail the search even for targets where they usually do not
  // "failures" or "all": the findings to shrink and replay. Empty means the default of the target.
  std::string prove;
  bool expect = false;  // the exit code says whether the findings that the target's file expects were found
  bool no_shrink = false, no_checkpoints = false, run_twice = false, first = false, json = false,
       full = false;
  CampaignOptions campaign;
};

void add_search_options(CLI::App& verb, SearchArguments& arguments);
std::string search_catalogues();  // strategies and detectors, for the end of --help
Result<Exit> run_search(const Target& target, SearchArguments arguments);

}  // namespace slalom
