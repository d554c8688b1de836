// A search as verbs offer it: the options that all of them have, and the search itself. What is searched is
// the verb's own business; how results are shown is in search_output.h.
#pragma once

#include <string>

#include "campaign/campaign.h"
#include "cli/command.h"

namespace slalom {

struct SearchArguments {
  std::string strategy;  // empty: dpor, or dfs for a target that waits by yielding
  uint64_t seed = 1;
  std::string choices = "everywhere";
  uint64_t max_steps = 20'000;
  std::string detectors = "default";
  std::string time;
  std::string junit;    // a file to write; empty: none
  std::string fail_on;  // "race": races count, also where they usually do not
  std::string prove;    // "failures" or "all": what is shrunk and replayed. Empty: what suits the target
  bool expect = false;  // the exit code says whether what the target's file expects was found
  bool no_shrink = false, no_checkpoints = false, run_twice = false, first = false, json = false,
       full = false;
  CampaignOptions campaign;
};

void add_search_options(CLI::App& verb, SearchArguments& arguments);
std::string search_catalogues();  // strategies and detectors, for the end of --help
Result<Exit> run_search(const Target& target, SearchArguments arguments);

}  // namespace slalom
