#include "explore/strategies/detour.h"

#include <algorithm>
#include <bit>

#include "explore/save.h"
#include "explore/strategies/sampling.h"

namespace slalom {
namespace {

// Some bugs show where agents switch often, others where they seldom do.
class DetourWalker : public Walker {
 public:
  DetourWalker(Rng rng, bool seldom) : rng_(rng), seldom_(seldom) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    constexpr uint64_t kSeldom = 8;
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    if (seldom_ && point.kind == ChoiceKind::Running && rng_.below(kSeldom) != 0)
      return Decision{next_in_order(point, options).agent, 0, 0};
    return Decision{options[rng_.below(options.size())].agent, 0, 0};
  }

 private:
  Rng rng_;
  bool seldom_;
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
  tasks_ = tasks;  // another part of the random numbers
}

void Detour::keep(std::vector<Known>& all, Known known) {
  if (std::ranges::any_of(all, [&](const Known& other) { return other.class_hash == known.class_hash; }))
    return;
  all.insert(std::upper_bound(all.begin(), all.end(), known), std::move(known));
  if (all.size() > kKept) all.pop_back();
}

void Detour::watch(const Execution& execution, bool own) {
  const bool failed = ended_in_failure(execution);
  watched_ += !own;
  failed_ += !own && failed;
  const size_t length = execution.choices.size();
  if (!failed || execution.divergence || length == 0 || length > kLongest) return;
  if (seen_.size() == kKept && length <= seen_.back().picks.size()) return;
  Known known{{}, execution.class_hash, 0};
  known.picks.reserve(length);
  for (const ChoiceRecord& record : execution.choices) known.picks.push_back(record.taken);
  keep(seen_, std::move(known));
}

bool Detour::start_epoch() {
  std::erase_if(known_, [](const Known& known) { return known.tries >= kTries; });
  for (Known& known : seen_) keep(known_, std::move(known));
  seen_.clear();
  const bool due = 2 * failed_ >= watched_ && failed_ > 0 && !known_.empty();
  watched_ = failed_ = 0;
  return due;
}

std::optional<Task> Detour::begin() {
  if (known_.empty()) return std::nullopt;
  Task task;
  task.index = tasks_++;
  Rng rng(seed_, task.index);
  Known& known = known_[rng.below(known_.size())];
  ++known.tries;
  const size_t length = known.picks.size();
  const uint64_t furthest = uint64_t{1} << rng.below(std::bit_width(length));
  const size_t back = 1 + rng.below(std::min<uint64_t>(furthest, length));
  task.prefix.assign(known.picks.begin(), known.picks.end() - static_cast<std::ptrdiff_t>(back));
  return task;
}

std::unique_ptr<Walker> Detour::walker(const Task& task) const {
  Rng rng(seed_ ^ 1, task.index);
  const bool seldom = rng.below(2) == 0;
  return std::make_unique<DetourWalker>(rng, seldom);
}

void Detour::end(const Task&, const Execution& execution) {
  ++ended_;
  passed_ += ended_by_itself(execution.outcome) && !ended_in_failure(execution);
}

Coverage Detour::coverage() const {
  Coverage coverage;
  if (ended_ > 0)
    coverage.statement = fmt::format(
        "detour: {} executions went another way shortly before a known failure, and {} of "
        "them met no failure.",
        with_commas(ended_), with_commas(passed_));
  return coverage;
}

void Detour::save(ByteWriter& out, const std::vector<Known>& all) {
  out.u64(all.size());
  for (const Known& known : all) {
    out.fixed64(known.class_hash);
    out.u64(known.tries);
    out.u64(known.picks.size());
    for (const Pick& pick : known.picks) encode(out, pick);
  }
}

void Detour::load(ByteReader& in, std::vector<Known>& all) {
  all.clear();
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    Known& known = all.emplace_back();
    known.class_hash = in.fixed64();
    known.tries = static_cast<uint32_t>(in.u64());
    for (uint64_t length = in.count(); length > 0 && in.ok(); --length)
      decode(in, known.picks.emplace_back());
    if (known.picks.empty()) in.fail();
  }
}

void Detour::save(ByteWriter& out) const {
  save(out, known_);
  save(out, seen_);
  for (uint64_t value : {watched_, failed_, tasks_, passed_, ended_}) out.u64(value);
}

bool Detour::load(ByteReader& in) {
  load(in, known_);
  load(in, seen_);
  for (uint64_t* value : {&watched_, &failed_, &tasks_, &passed_, &ended_}) *value = in.u64();
  return in.ok();
}

}  // namespace slalom
