// The results of a search as text, as JSON, and as JUnit XML.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "campaign/campaign.h"

namespace slalom {

struct SearchOutput {
  bool full = false;            // all reports, not only those of the worst
  std::filesystem::path state;  // file from which the search can continue; empty if none
};

// `comparison` is with the findings that the target's file expects, if it expects any.
void print_search(const Target& target, const Job& job, const CampaignResult& result,
                  const std::optional<Comparison>& comparison, const SearchOutput& output);
nlohmann::ordered_json search_json(const Target& target, const Job& job, const CampaignResult& result,
                                   const std::optional<Comparison>& comparison);
// JUnit XML for build servers. Failures are the findings that decide the exit code: all, or only those that
// are not expected.
std::string search_junit(const Target& target, const CampaignResult& result, bool races_count,
                         const std::optional<Comparison>& comparison);

}  // namespace slalom
