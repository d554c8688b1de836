#include "campaign/strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/split.h"
#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/portfolio.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "explore/strategies/surw.h"

namespace slalom {
namespace {

// Reads settings one by one. A setting that no strategy reads is an error at the end.
class Settings {
 public:
  Settings(const StrategySpec& spec, const StrategyInfo& info)
      : spec_(spec), info_(info), used_(spec.settings.size(), false) {}

  std::optional<std::string> text(std::string_view key) {
    for (size_t i = 0; i < used_.size(); ++i)
      if (spec_.settings[i].first == key) {
        used_[i] = true;
        return spec_.settings[i].second;
      }
    return std::nullopt;
  }
  bool flag(std::string_view key) {
    const auto value = text(key);
    if (value && !value->empty()) problem_ = fmt::format("{} takes no value", key);
    return value.has_value();
  }
  std::optional<uint64_t> number(std::string_view key) {
    const auto value = text(key);
    if (!value) return std::nullopt;
    uint64_t number = 0;
    const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (code != std::errc() || end != value->data() + value->size())
      problem_ = fmt::format("{} takes a whole number, not \"{}\"", key, *value);
    return number;
  }
  // Fails if a setting was malformed, or if no call has asked for it.
  Result<void> check() const {
    std::string problem = problem_;
    for (size_t i = 0; i < used_.size() && problem.empty(); ++i)
      if (!used_[i]) problem = fmt::format("there is no setting \"{}\"", spec_.settings[i].first);
    if (problem.empty()) return {};
    const std::string_view known = info_.settings;
    return error("strategy {}: {}; settings: {}", info_.name, problem, known.empty() ? "none" : known);
  }

 private:
  const StrategySpec& spec_;
  const StrategyInfo& info_;
  std::vector<bool> used_;
  std::string problem_;
};

using Made = Result<std::unique_ptr<Strategy>>;
template <class OneStrategy, class Options>
Made made(Options&& options) {
  return std::unique_ptr<Strategy>(std::make_unique<OneStrategy>(std::forward<Options>(options)));
}

struct Request {
  Settings& settings;
  uint64_t seed;
  const ChoicePolicy& policy;
  bool insists;
};

Made make_dfs(const Request& request) {
  Settings& settings = request.settings;
  DfsOptions options;
  const std::string bound = settings.text("bound").value_or("preemptions");
  if (bound == "none")
    options.bound = DfsOptions::Bound::None;
  else if (bound == "delays")
    options.bound = DfsOptions::Bound::Delays;
  else if (bound != "preemptions")
    return error("strategy dfs: bound is preemptions, delays or none, not \"{}\"", bound);
  if (const auto limit = settings.number("limit")) {
    if (options.bound == DfsOptions::Bound::None)
      return error("strategy dfs: limit needs a bound (preemptions or delays)");
    options.limit = *limit;
  }
  if (settings.flag("unfair")) options.schedules = DfsOptions::Schedules::All;
  if (settings.flag("cache")) options.caching = DfsOptions::Caching::HappensBefore;
  return made<Dfs>(options);
}

Made make_dpor(const Request& request) {
  Settings& settings = request.settings;
  DporOptions options;
  if (settings.flag("coarse")) options.mode = DporOptions::Mode::Coarse;
  if (settings.flag("bounded")) options.mode = DporOptions::Mode::Bounded;
  if (const auto limit = settings.number("limit")) {
    options.mode = DporOptions::Mode::Bounded;
    options.limit = static_cast<uint32_t>(std::min<uint64_t>(*limit, UINT32_MAX - 1));
  }
  if (options.mode == DporOptions::Mode::Fine && request.policy.where != ChoicePolicy::Where::Everywhere)
    return error(
        "strategy dpor needs choice points everywhere; use --choices everywhere, or dpor:coarse with these");
  return made<Dpor>(options);
}

Made make_surw(const Request& request) {
  SurwOptions options;
  options.seed = request.seed;
  const std::string interesting = request.settings.text("interesting").value_or("alternate");
  if (interesting == "all")
    options.interesting = SurwOptions::Interesting::All;
  else if (interesting == "object")
    options.interesting = SurwOptions::Interesting::OneObject;
  else if (interesting == "alternate")
    options.interesting = SurwOptions::Interesting::Alternate;
  else
    return error("strategy surw: interesting is all, object or alternate, not \"{}\"", interesting);
  return made<Surw>(options);
}

Made make_pct(const Request& request) {
  PctOptions options;
  options.seed = request.seed;
  options.insists = request.insists;
  options.depth = static_cast<uint32_t>(request.settings.number("depth").value_or(options.depth));
  options.k = request.settings.number("k").value_or(0);
  TRY(request.settings.check());  // before the depth is used: a depth that is no number must not count as 0
  if (options.depth < 1 || options.depth > Pct::kMostDepth)
    return error("strategy pct: depth is at least 1 and at most {}", Pct::kMostDepth);
  return made<Pct>(options);
}

Made make_pos(const Request& request) {
  return made<Pos>(PosOptions{request.seed});
}

Made make_random(const Request& request) {
  RandomOptions options{.seed = request.seed};
  options.stretch = static_cast<uint32_t>(request.settings.number("stretch").value_or(options.stretch));
  TRY(request.settings.check());
  if (options.stretch == 0) return error("strategy random: stretch is at least 1");
  return made<Random>(options);
}

Made make_portfolio(const Request& request) {
  auto arms = sampling_arms(request.seed, request.insists);
  DfsOptions fewest_first;  // ends the search if the space is small
  if (request.settings.flag("cache")) fewest_first.caching = DfsOptions::Caching::HappensBefore;
  arms.insert(arms.begin(), std::make_unique<Dfs>(fewest_first));
  arms.push_back(std::make_unique<Detour>(combine(request.seed, arms.size())));
  return made<Portfolio>(std::move(arms));
}

struct Row {
  StrategyInfo info;
  Made (*make)(const Request& request);
};
constexpr bool kExhaustive = true, kSamples = false;
constexpr Row kTable[] = {
    {{"dpor", "coarse | bounded, limit=N",
      "every order of dependent operations, once (optimal partial-order reduction)", kExhaustive},
     make_dpor},
    {{"dfs", "bound=preemptions|delays|none, limit=N, cache, unfair",
      "every schedule, by number of preemptions or delays", kExhaustive},
     make_dfs},
    {{"pct", "depth=N, k=N",
      "random priorities with depth-1 change points: a guaranteed chance per execution", kSamples},
     make_pct},
    {{"pos", "", "random priorities per operation: samples partial orders", kSamples}, make_pos},
    {{"surw", "interesting=all|object|alternate", "random walk that is uniform over interleavings", kSamples},
     make_surw},
    {{"random", "stretch=N", "a random agent at every choice point, or after 1 to N of them", kSamples},
     make_random},
    {{"portfolio", "cache", "dfs and all sampling strategies; more of what finds new behaviour", kSamples},
     make_portfolio},
};

const Row* find_row(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, [](const Row& one) { return one.info.name; });
  return row == std::end(kTable) ? nullptr : row;
}

}  // namespace

std::vector<StrategyInfo> strategy_catalogue() {
  std::vector<StrategyInfo> all;
  for (const Row& row : kTable) all.push_back(row.info);
  return all;
}

Result<StrategySpec> parse_strategy(const std::string& text, uint64_t seed) {
  StrategySpec spec;
  spec.seed = seed;
  const size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  if (find_row(spec.name) == nullptr) {
    std::string names;
    for (const Row& row : kTable) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.info.name);
    return error("there is no strategy \"{}\"; choose one of: {}", spec.name, names);
  }
  if (colon == std::string::npos) return spec;
  for (const std::string_view item : split(std::string_view(text).substr(colon + 1), ',')) {
    const size_t equals = item.find('=');
    if (item.empty())
      return error("strategy \"{}\": an empty setting; write {}:key=value,key=value", text, spec.name);
    spec.settings.emplace_back(item.substr(0, equals),
                               equals == std::string_view::npos ? "" : item.substr(equals + 1));
  }
  return spec;
}

std::string to_text(const StrategySpec& spec) {
  std::string text = spec.name;
  for (size_t i = 0; i < spec.settings.size(); ++i) {
    const auto& [key, value] = spec.settings[i];
    text += fmt::format("{}{}{}{}", i == 0 ? ":" : ",", key, value.empty() ? "" : "=", value);
  }
  return text;
}

Result<std::unique_ptr<Strategy>> make_strategy(const StrategySpec& spec, const ChoicePolicy& policy,
                                                bool insists) {
  const Row* row = find_row(spec.name);
  if (row == nullptr) return error("there is no strategy \"{}\"", spec.name);
  Settings settings(spec, row->info);
  TRY_ASSIGN(std::unique_ptr<Strategy> strategy, row->make({settings, spec.seed, policy, insists}));
  TRY(settings.check());
  return strategy;
}

}  // namespace slalom
