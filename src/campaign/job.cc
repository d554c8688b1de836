#include "campaign/job.h"

#include <algorithm>
#include <charconv>

#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/portfolio.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "explore/strategies/surw.h"
#include "trace/files/serialise.h"

namespace slalom {
namespace {

// Reads settings one by one. A setting that no strategy reads is an error at the end.
class Settings {
 public:
  explicit Settings(const StrategySpec& spec) : spec_(spec), used_(spec.settings.size(), false) {}

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
  Result<void> check(const StrategyInfo& info) const {
    std::string problem = problem_;
    for (size_t i = 0; i < used_.size() && problem.empty(); ++i)
      if (!used_[i]) problem = fmt::format("there is no setting \"{}\"", spec_.settings[i].first);
    if (problem.empty()) return {};
    return error("strategy {}: {}; settings: {}", info.name, problem,
                 info.settings.empty() ? "none" : info.settings);
  }

 private:
  const StrategySpec& spec_;
  std::vector<bool> used_;
  std::string problem_;
};

Result<std::unique_ptr<Strategy>> make_dfs(Settings& settings) {
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
  return std::unique_ptr<Strategy>(std::make_unique<Dfs>(options));
}

Result<std::unique_ptr<Strategy>> make_dpor(Settings& settings, const ChoicePolicy& policy) {
  DporOptions options;
  if (settings.flag("coarse")) options.mode = DporOptions::Mode::Coarse;
  if (settings.flag("bounded")) options.mode = DporOptions::Mode::Bounded;
  if (const auto limit = settings.number("limit")) {
    options.mode = DporOptions::Mode::Bounded;
    options.limit = static_cast<uint32_t>(std::min<uint64_t>(*limit, UINT32_MAX - 1));
  }
  if (options.mode == DporOptions::Mode::Fine && policy.where != ChoicePolicy::Where::Everywhere)
    return error(
        "strategy dpor needs choice points everywhere; use --choices everywhere, or dpor:coarse with these");
  return std::unique_ptr<Strategy>(std::make_unique<Dpor>(options));
}

Result<std::unique_ptr<Strategy>> make_surw(Settings& settings, uint64_t seed) {
  SurwOptions options;
  options.seed = seed;
  const std::string interesting = settings.text("interesting").value_or("alternate");
  if (interesting == "all")
    options.interesting = SurwOptions::Interesting::All;
  else if (interesting == "object")
    options.interesting = SurwOptions::Interesting::OneObject;
  else if (interesting == "alternate")
    options.interesting = SurwOptions::Interesting::Alternate;
  else
    return error("strategy surw: interesting is all, object or alternate, not \"{}\"", interesting);
  return std::unique_ptr<Strategy>(std::make_unique<Surw>(options));
}

}  // namespace

const std::vector<StrategyInfo>& strategy_catalogue() {
  static const std::vector<StrategyInfo> catalogue = {
      {"dpor", "coarse | bounded, limit=N",
       "every order of dependent operations, once (optimal partial-order reduction)", true},
      {"dfs", "bound=preemptions|delays|none, limit=N, cache, unfair",
       "every schedule, by number of preemptions or delays", true},
      {"pct", "depth=N, k=N",
       "random priorities with depth-1 change points: a guaranteed chance per execution", false},
      {"pos", "", "random priorities per operation: samples partial orders", false},
      {"surw", "interesting=all|object|alternate", "random walk that is uniform over interleavings", false},
      {"random", "stretch=N", "a random agent at every choice point, or after 1 to N of them", false},
      {"portfolio", "cache", "dfs and all sampling strategies; more of what finds new behaviour", false},
  };
  return catalogue;
}

Result<StrategySpec> parse_strategy(const std::string& text, uint64_t seed) {
  StrategySpec spec;
  spec.seed = seed;
  const size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  const auto& all = strategy_catalogue();
  if (std::none_of(all.begin(), all.end(),
                   [&](const StrategyInfo& info) { return info.name == spec.name; })) {
    std::string names;
    for (const StrategyInfo& info : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
    return error("there is no strategy \"{}\"; choose one of: {}", spec.name, names);
  }
  if (colon == std::string::npos) return spec;
  size_t at = colon + 1;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    const size_t equals = item.find('=');
    if (item.empty())
      return error("strategy \"{}\": an empty setting; write {}:key=value,key=value", text, spec.name);
    spec.settings.emplace_back(item.substr(0, equals),
                               equals == std::string::npos ? "" : item.substr(equals + 1));
    at = comma + 1;
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
  const auto& all = strategy_catalogue();
  const auto info =
      std::find_if(all.begin(), all.end(), [&](const StrategyInfo& i) { return i.name == spec.name; });
  if (info == all.end()) return error("there is no strategy \"{}\"", spec.name);
  Settings settings(spec);
  std::unique_ptr<Strategy> strategy;
  if (spec.name == "dfs") {
    TRY_ASSIGN(strategy, make_dfs(settings));
  } else if (spec.name == "dpor") {
    TRY_ASSIGN(strategy, make_dpor(settings, policy));
  } else if (spec.name == "surw") {
    TRY_ASSIGN(strategy, make_surw(settings, spec.seed));
  } else if (spec.name == "pct") {
    PctOptions options;
    options.seed = spec.seed;
    options.insists = insists;
    options.depth = static_cast<uint32_t>(settings.number("depth").value_or(options.depth));
    options.k = settings.number("k").value_or(0);
    TRY(settings.check(*info));  // before the depth is used: a depth that is no number must not count as 0
    if (options.depth < 1 || options.depth > Pct::kMostDepth)
      return error("strategy pct: depth is at least 1 and at most {}", Pct::kMostDepth);
    strategy = std::make_unique<Pct>(options);
  } else if (spec.name == "pos") {
    strategy = std::make_unique<Pos>(PosOptions{spec.seed});
  } else if (spec.name == "random") {
    RandomOptions options{.seed = spec.seed};
    options.stretch = static_cast<uint32_t>(settings.number("stretch").value_or(options.stretch));
    TRY(settings.check(*info));
    if (options.stretch == 0) return error("strategy random: stretch is at least 1");
    strategy = std::make_unique<Random>(options);
  } else {
    auto arms = sampling_arms(spec.seed, insists);
    DfsOptions fewest_first;  // ends the search if the space is small
    if (settings.flag("cache")) fewest_first.caching = DfsOptions::Caching::HappensBefore;
    arms.insert(arms.begin(), std::make_unique<Dfs>(fewest_first));
    arms.push_back(std::make_unique<Detour>(combine(spec.seed, arms.size())));
    strategy = std::make_unique<Portfolio>(std::move(arms));
  }
  TRY(settings.check(*info));
  return strategy;
}

void encode(ByteWriter& out, const Job& job) {
  encode(out, job.target.kind);
  encode(out, job.target.name);
  encode(out, job.target.content);
  out.u64(job.target.params.size());
  for (const auto& [name, value] : job.target.params) {
    encode(out, name);
    out.i64(value);
  }
  encode(out, to_text(job.strategy));
  out.u64(job.strategy.seed);
  encode(out, job.policy);
  out.u64(job.max_steps);
  encode(out, job.detectors);
}

void decode(ByteReader& in, Job& job) {
  std::string kind, name, content, strategy;
  decode(in, kind);
  decode(in, name);
  decode(in, content);
  std::vector<std::pair<std::string, int64_t>> params;
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    auto& [key, value] = params.emplace_back();
    decode(in, key);
    value = in.i64();
  }
  job.target = make_target(std::move(kind), std::move(name), std::move(content), std::move(params));
  decode(in, strategy);
  Result<StrategySpec> spec = parse_strategy(strategy, in.u64());
  if (spec.ok())
    job.strategy = *spec;
  else
    in.fail();
  decode(in, job.policy);
  job.max_steps = in.u64();
  decode(in, job.detectors);
}

}  // namespace slalom
