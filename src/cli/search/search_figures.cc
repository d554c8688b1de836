#include "cli/search/search_figures.h"

#include <algorithm>
#include <utility>

#include "explore/strategies/sampling.h"
#include "report/core/summary.h"

namespace slalom {
namespace {

double figure(const CampaignResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.statistics, name, &std::pair<std::string, double>::first);
  return found == result.statistics.end() ? 0 : found->second;
}

std::string in_percent(double share) {
  return share > 0 && share < 0.01 ? "under 1 %" : fmt::format("{:.0f} %", 100 * share);
}

}  // namespace

std::string figures_in_words(const CampaignResult& result, size_t width) {
  const ExploreResult& r = result.explored;
  const auto executions = static_cast<double>(std::max<uint64_t>(1, r.executions + r.truncated));
  std::string speed;
  if (result.search_cpu_seconds > 0)
    speed = fmt::format("; {} thousand executions an hour and core",
                        with_commas(static_cast<uint64_t>(executions / result.search_cpu_seconds * 3.6)));
  const auto share = [&](const char* name) { return in_percent(figure(result, name)); };
  return wrap(fmt::format(
                  "an execution: {} instructions (median), {:.0f} choice points (mean); "
                  "{} communication points{}",
                  with_commas(static_cast<uint64_t>(figure(result, "instructions_median"))),
                  static_cast<double>(r.positions) / executions,  // including those that a machine passed
                  with_commas(result.communication_points), speed),
              width, 2, 4) +
         wrap(fmt::format("a CPU seemed to wait in {} of them: HLT {}, PAUSE {}, loop {}, starvation {}",
                          share("h_share"), share("h1_share"), share("h2_share"), share("h3_share"),
                          share("h4_share")),
              width, 2, 4);
}

}  // namespace slalom
