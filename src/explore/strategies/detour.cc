#include "explore/strategies/detour.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/hash.h"
#include "explore/save.h"
#include "explore/strategies/sampling.h"

namespace slalom {
namespace {

// Preempts at one of `stretch` choice points: some bugs show with frequent switches, others with rare ones.
class DetourWalker : public Walker {
 public:
  DetourWalker(Rng rng, uint64_t stretch) : rng_(rng), stretch_(stretch) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    if (point.kind == ChoiceKind::Running && rng_.below(stretch_) != 0)
      return Decision{next_in_order(point, options).agent};
    return Decision{options[rng_.below(options.size())].agent};
  }

 private:
  Rng rng_;
  uint64_t stretch_;
};

bool ended_in_failure(const Execution& execution) {
  const bool early = std::holds_alternative<Faulted>(execution.outcome) ||
                     std::holds_alternative<Deadlocked>(execution.outcome);
  return early && std::ranges::any_of(execution.verdicts, [](const Verdict& verdict) {
           return verdict.severity == Severity::Failure;
         });
}

}  // namespace

void Detour::restart() {
  const uint64_t tasks = tasks_;
  *this = Detour(seed_);
  tasks_ = tasks;  // continues with other random numbers
}

bool Detour::has_room(const Pool& pool, uint64_t rank) {
  return pool.size() < kKept || rank < pool.back().rank;
}

void Detour::keep(Pool& pool, Known known) {
  if (!has_room(pool, known.rank)) return;
  for (const Known& other : pool)
    if (other.class_hash == known.class_hash) return;
  const auto at = std::ranges::upper_bound(pool, known.rank, {}, &Known::rank);
  pool.insert(at, std::move(known));
  if (pool.size() > kKept) pool.pop_back();
}

void Detour::watch(const Execution& execution, bool own) {
  const bool failed = ended_in_failure(execution);
  watched_ += !own;
  failed_ += !own && failed;
  const size_t length = execution.choices.size();
  if (execution.divergence || !ended_by_itself(execution.outcome) || length == 0 || length > kLongest) return;
  // Ranks failures by how late they came. Ranks other executions at random: a hash is as good as a random
  // number.
  const uint64_t rank = failed ? kLongest - length : mix(execution.class_hash);
  Pool& pool = seen_[failed ? 0 : 1];
  if (!has_room(pool, rank)) return;
  Known known{{}, execution.class_hash, rank, 0};
  known.picks.reserve(length);
  for (const ChoiceRecord& record : execution.choices) known.picks.push_back(record.taken);
  keep(pool, std::move(known));
}

bool Detour::start_epoch() {
  for (size_t i = 0; i < std::size(known_); ++i) {
    std::erase_if(known_[i], [](const Known& known) { return known.tries >= kTries; });
    for (Known& known : seen_[i]) keep(known_[i], std::move(known));
    seen_[i].clear();
  }
  const bool due = failed_ > 0 && 2 * failed_ >= watched_ && !known_[0].empty();
  watched_ = failed_ = 0;
  return due;
}

std::optional<Task> Detour::begin() {
  if (known_[0].empty()) return std::nullopt;
  Task task;
  task.index = tasks_++;
  Rng rng(seed_, task.index);
  Pool& pool = known_[known_[1].empty() ? 0 : rng.below(std::size(known_))];
  Known& known = pool[rng.below(pool.size())];
  ++known.tries;
  const size_t length = known.picks.size();
  const uint64_t furthest = uint64_t{1} << rng.below(static_cast<uint64_t>(std::bit_width(length)) + 1);
  const size_t back = 1 + rng.below(std::min<uint64_t>(furthest, length));
  task.prefix.assign(known.picks.begin(), known.picks.end() - static_cast<std::ptrdiff_t>(back));
  return task;
}

std::unique_ptr<Walker> Detour::walker(const Task& task) const {
  constexpr uint64_t kStretches[] = {1, 4, 16, 64};
  Rng rng(seed_ ^ 1, task.index);
  const uint64_t stretch = kStretches[rng.below(std::size(kStretches))];
  return std::make_unique<DetourWalker>(rng, stretch);
}

void Detour::end(const Task&, const Execution& execution) {
  ++ended_;
  passed_ += ended_by_itself(execution.outcome) && !ended_in_failure(execution);
}

Coverage Detour::coverage() const {
  Coverage coverage;
  if (ended_ > 0)
    coverage.statement = fmt::format(
        "detour: {} executions repeated an earlier one in part and went on another way, round known "
        "failures; {} of "
        "them met none.",
        with_commas(ended_), with_commas(passed_));
  return coverage;
}

void Detour::save(ByteWriter& out, const Pool& pool) {
  out.u64(pool.size());
  for (const Known& known : pool) {
    out.fixed64(known.class_hash);
    out.fixed64(known.rank);
    out.u64(known.tries);
    out.u64(known.picks.size());
    for (const Pick& pick : known.picks) encode(out, pick);
  }
}

void Detour::load(ByteReader& in, Pool& pool) {
  pool.clear();
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    Known& known = pool.emplace_back();
    known.class_hash = in.fixed64();
    known.rank = in.fixed64();
    known.tries = static_cast<uint32_t>(in.u64());
    for (uint64_t length = in.count(); length > 0 && in.ok(); --length)
      decode(in, known.picks.emplace_back());
    if (known.picks.empty()) in.fail();
  }
}

void Detour::save(ByteWriter& out) const {
  for (const auto* pools : {&known_, &seen_})
    for (const Pool& pool : *pools) save(out, pool);
  for (uint64_t value : {watched_, failed_, tasks_, passed_, ended_}) out.u64(value);
}

bool Detour::load(ByteReader& in) {
  for (auto* pools : {&known_, &seen_})
    for (Pool& pool : *pools) load(in, pool);
  for (uint64_t* value : {&watched_, &failed_, &tasks_, &passed_, &ended_}) *value = in.u64();
  return in.ok();
}

}  // namespace slalom
