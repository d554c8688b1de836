#include "explore/strategies/dfs.h"

#include <algorithm>

#include "explore/save.h"

namespace slalom {
class Dfs::Walk : public Walker {
 public:
  Walk(const Dfs& dfs, uint64_t cost) : dfs_(dfs), cost_(cost) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override {
    // The default order costs nothing, so the cost is that of the prefix.
    if (dfs_.options_.caching != DfsOptions::Caching::Off &&
        cached(dfs_.cache_, dfs_.key(so_far.choices.back()), cost_))
      return Abandoned{"explored before", Abandoned::Reason::Redundant};
    if (point.kind == ChoiceKind::Data) return Decision{point.current};
    return Decision{next_in_order(point, options).agent};
  }
  void rule(ChoiceRule& rule) const override { rule.kind = ChoiceRule::Kind::InOrder; }

 private:
  const Dfs& dfs_;
  uint64_t cost_;
};

Dfs::Dfs(DfsOptions options) : options_(options), links_(1) {
  add_pending(Pending{});
}

void Dfs::restart() {
  const uint64_t tasks = tasks_;
  *this = Dfs(options_);
  tasks_ = tasks;
}

std::string Dfs::name() const {
  std::string name = options_.caching == DfsOptions::Caching::Off ? "dfs" : "dfs+cache";
  if (options_.bound == DfsOptions::Bound::Preemptions) name += " by preemptions";
  if (options_.bound == DfsOptions::Bound::Delays) name += " by delays";
  return name;
}

std::optional<Task> Dfs::begin() {
  if (ended_ == outstanding_.size()) {
    outstanding_.clear();
    ended_ = 0;
    recent_.for_each([this](uint64_t key, uint64_t cost) { cache_[key] = cost; });
    recent_.clear();
    if (next_.empty()) choose_next();
  }
  if (next_.empty()) return std::nullopt;
  const Pending next = next_.back();
  next_.pop_back();
  outstanding_.push_back(next);
  Task task;
  task.index = tasks_++;
  task.hint = DfsHint{next.cost};
  for (uint32_t link = next.link; link != 0; link = links_[link].parent)
    task.prefix.push_back(links_[link].pick);
  std::reverse(task.prefix.begin(), task.prefix.end());
  return task;
}

// Chooses the next branches to hand out. The order does not depend on how many tasks the caller asks for at a
// time. Only one bound is worked on at a time, because outstanding tasks may still add branches to it.
void Dfs::choose_next() {
  uint64_t cost = 0;
  while (cost < pending_.size() && pending_[cost].empty()) ++cost;
  if (cost == pending_.size()) return;
  std::vector<Pending>& from = pending_[cost];
  const auto begin = from.end() - static_cast<std::ptrdiff_t>(std::min(from.size(), window_));
  next_.assign(begin, from.end());
  from.erase(begin, from.end());
}

std::unique_ptr<Walker> Dfs::walker(const Task& task) const {
  return std::make_unique<Walk>(*this, hint_of<DfsHint>(task).cost);
}

void Dfs::end(const Task& task, const Execution& execution) {
  const Pending from = outstanding_[ended_++];
  double mass = from.mass;
  uint32_t link = from.link;
  // A diverged prefix led elsewhere, so its continuation is not the one to explore.
  const size_t end = execution.divergence ? task.prefix.size() : execution.choices.size();
  std::vector<Pending> found;
  for (size_t i = task.prefix.size(); i < end; ++i) {
    const ChoiceRecord& record = execution.choices[i];
    if (options_.caching != DfsOptions::Caching::Off) {
      const uint64_t state = key(record);
      if (cached(recent_, state, from.cost)) break;  // an execution of the same round explored it
      recent_[state] = from.cost + 1;
    }
    const bool data = record.kind == ChoiceKind::Data;
    const auto options = execution.options_at(i);
    const size_t branches = data ? record.arity : options.size();
    mass /= static_cast<double>(branches);
    const auto branch = [&](const Pick& pick, uint64_t cost) {
      found.push_back({add_link(link, pick), cost, mass});
    };
    if (data) {
      for (uint32_t value = record.arity; value-- > 0;)
        if (value != record.taken.value)
          branch({record.current, value, true, record.taken.digest}, from.cost);
    } else {
      for (size_t o = options.size(); o-- > 0;)
        if (options[o].agent != record.taken.agent)
          branch({options[o].agent, 0, false, record.taken.digest},
                 from.cost + cost_of(execution, i, options[o].agent));
    }
    const uint32_t next = add_link(link, record.taken);
    if (link != from.link) release(link);
    link = next;
  }
  if (link != from.link) release(link);
  for (const Pending& pending : found) add_pending(pending);
  if (from.link != 0) release(from.link);
  explored_ += mass;
  ++executions_;
  withheld_ = withheld_ || execution.withheld;
}

// Returns a new link with one user, the caller.
uint32_t Dfs::add_link(uint32_t parent, const Pick& pick) {
  uint32_t at;
  if (free_links_.empty()) {
    at = static_cast<uint32_t>(links_.size());
    links_.emplace_back();
  } else {
    at = free_links_.back();
    free_links_.pop_back();
  }
  links_[at] = Link{parent, 1, pick};
  if (parent != 0) ++links_[parent].users;
  return at;
}

void Dfs::release(uint32_t link) {
  while (link != 0 && --links_[link].users == 0) {
    free_links_.push_back(link);
    link = links_[link].parent;
  }
}

void Dfs::add_pending(Pending pending) {
  if (pending.cost > options_.limit) {
    beyond_limit_ = true;
    explored_ += pending.mass;
    release(pending.link);
    return;
  }
  if (pending_.size() <= pending.cost) pending_.resize(pending.cost + 1);
  pending_[pending.cost].push_back(pending);
}

uint64_t Dfs::cost_of(const Execution& execution, size_t choice, AgentId agent) const {
  const ChoiceRecord& record = execution.choices[choice];
  const auto options = execution.options_at(choice);
  if (options_.bound == DfsOptions::Bound::Preemptions)
    return record.kind == ChoiceKind::Running && agent != record.current ? 1 : 0;
  if (options_.bound == DfsOptions::Bound::None) return 0;
  // Delays: the number of agents passed over in cyclic order, starting at the default one.
  ChoicePoint point;
  point.kind = record.kind;
  point.current = record.current;
  const AgentId first = next_in_order(point, options).agent;
  const auto rank = [&](AgentId id) {
    return std::find_if(options.begin(), options.end(), [&](const Option& o) { return o.agent == id; }) -
           options.begin();
  };
  return static_cast<uint64_t>(rank(agent) - rank(first) + static_cast<std::ptrdiff_t>(options.size())) %
         options.size();
}

uint64_t Dfs::key(const ChoiceRecord& record) const {
  const bool data = record.kind == ChoiceKind::Data;
  const bool who_matters = data || options_.bound != DfsOptions::Bound::None;
  return combine(record.history, data ? 1 : 0, who_matters ? record.current.raw : 0);
}

bool Dfs::cached(const FlatMap<uint64_t>& cache, uint64_t key, uint64_t cost) {
  const uint64_t* at = cache.find(key);
  return at != nullptr && *at <= cost + 1;
}

Coverage Dfs::coverage() const {
  Coverage coverage;
  uint64_t waiting = next_.size() + outstanding_.size() - ended_;
  uint64_t first = std::numeric_limits<uint64_t>::max();
  for (size_t cost = pending_.size(); cost-- > 0;) {
    waiting += pending_[cost].size();
    if (!pending_[cost].empty()) first = cost;
  }
  for (const Pending& next : next_) first = std::min(first, next.cost);
  for (size_t i = ended_; i < outstanding_.size(); ++i) first = std::min(first, outstanding_[i].cost);
  coverage.exhausted = waiting == 0;
  coverage.fair_only = withheld_;
  if (options_.bound != DfsOptions::Bound::None && (waiting > 0 || beyond_limit_)) {
    coverage.bound = options_.bound == DfsOptions::Bound::Preemptions ? "preemptions" : "delays";
    if (waiting == 0)
      coverage.completed = options_.limit;
    else if (first > 0)
      coverage.completed = first - 1;
  }
  if (explored_ > 0) coverage.estimated_total = static_cast<double>(executions_) / std::min(1.0, explored_);
  const std::string_view which = withheld_ ? "fair schedule" : "schedule";
  if (waiting == 0 && !beyond_limit_)
    coverage.statement = fmt::format("every {} was executed", which);
  else if (coverage.completed)
    coverage.statement = fmt::format("every {} with at most {} was executed", which, coverage.in_words());
  else
    coverage.statement = explored_ < 1e-5 ? "less than 0.001 % of the schedules were executed"
                                          : fmt::format("about {:.2g} % of the schedules were executed",
                                                        100 * std::min(1.0, explored_));
  return coverage;
}

// Saves only the frontier: the branches still to be executed. Their paths share beginnings, so the frontier
// is written as a tree, each link once.
void Dfs::save(ByteWriter& out) const {
  CHECK(ended_ == outstanding_.size(), "a search is saved between rounds");
  out.u64(tasks_);
  out.u64(executions_);
  out.fixed64(std::bit_cast<uint64_t>(explored_));
  out.u8(beyond_limit_);
  out.u8(withheld_);
  const std::vector<uint32_t> numbers = save_links(out);
  out.u64(pending_.size());
  for (const auto& bucket : pending_) save_pending(out, numbers, bucket);
  out.u64(next_.empty() ? 0 : next_.front().cost);
  save_pending(out, numbers, next_);
  FlatMap<uint64_t> both = cache_;
  recent_.for_each([&](uint64_t key, uint64_t cost) { both[key] = cost; });
  std::vector<std::pair<uint64_t, uint64_t>> cache;
  cache.reserve(both.size());
  both.for_each([&](uint64_t key, uint64_t cost) { cache.emplace_back(key, cost); });
  std::sort(cache.begin(), cache.end());  // the map's order depends on how it grew
  out.u64(cache.size());
  for (const auto& [key, cost] : cache) {
    out.fixed64(key);
    out.u64(cost);
  }
}

// Returns the number of each link. Parents have smaller numbers than their children. 0: the root and free
// links.
std::vector<uint32_t> Dfs::save_links(ByteWriter& out) const {
  std::vector<uint32_t> numbers(links_.size(), 0);
  std::vector<uint32_t> order, path;
  const auto add = [&](const std::vector<Pending>& all) {
    for (const Pending& pending : all) {
      path.clear();
      for (uint32_t link = pending.link; link != 0 && numbers[link] == 0; link = links_[link].parent)
        path.push_back(link);
      for (size_t i = path.size(); i-- > 0;) {
        order.push_back(path[i]);
        numbers[path[i]] = static_cast<uint32_t>(order.size());
      }
    }
  };
  for (const auto& bucket : pending_) add(bucket);
  add(next_);
  out.u64(order.size());
  std::vector<uint64_t> digests(order.size() + 1, 0);  // of the choice point that follows each link
  for (const uint32_t link : order) {
    const Pick& pick = links_[link].pick;
    const uint32_t parent = numbers[links_[link].parent];
    const bool known = digests[parent] == pick.digest;
    out.u64(numbers[link] - parent);
    out.u8(static_cast<uint8_t>(pick.data | known << 1));
    encode(out, pick.agent);
    if (pick.data) out.u64(pick.value);
    if (!known) out.fixed64(digests[parent] = pick.digest);
  }
  return numbers;
}

void Dfs::load_links(ByteReader& in) {
  const uint64_t count = in.count();
  links_.resize(1);
  std::vector<uint64_t> digests(1, 0);
  for (uint64_t number = 1; number <= count && in.ok(); ++number) {
    const uint64_t back = in.u64();
    if (back == 0 || back > number) return void(in.fail());
    Link& link = links_.emplace_back();
    link.parent = static_cast<uint32_t>(number - back);
    const uint8_t flags = in.u8();
    decode(in, link.pick.agent);
    link.pick.data = (flags & 1) != 0;
    if (link.pick.data) link.pick.value = static_cast<uint32_t>(in.u64());
    if ((flags & 2) == 0) digests[link.parent] = in.fixed64();
    link.pick.digest = digests[link.parent];
    digests.push_back(0);
    if (link.parent != 0) ++links_[link.parent].users;
  }
}

// A mass is a product of 1/2, 1/3, ...: most of its lower bytes are 0.
void Dfs::save_pending(ByteWriter& out, const std::vector<uint32_t>& numbers,
                       const std::vector<Pending>& all) const {
  out.u64(all.size());
  uint32_t before = 0;
  for (const Pending& pending : all) {
    out.u64(__builtin_bswap64(std::bit_cast<uint64_t>(pending.mass)));
    out.i64(static_cast<int64_t>(numbers[pending.link]) - before);
    before = numbers[pending.link];
  }
}

void Dfs::load_pending(ByteReader& in, uint64_t cost, std::vector<Pending>& all) {
  int64_t number = 0;
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    Pending& pending = all.emplace_back();
    pending.cost = cost;
    pending.mass = std::bit_cast<double>(__builtin_bswap64(in.u64()));
    number += in.i64();
    if (number < 0 || static_cast<size_t>(number) >= links_.size()) return void(in.fail());
    pending.link = static_cast<uint32_t>(number);
    if (number != 0) ++links_[pending.link].users;
  }
}

bool Dfs::load(ByteReader& in) {
  *this = Dfs(options_);
  pending_.clear();
  tasks_ = in.u64();
  executions_ = in.u64();
  explored_ = std::bit_cast<double>(in.fixed64());
  beyond_limit_ = in.u8() != 0;
  withheld_ = in.u8() != 0;
  load_links(in);
  for (uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    const uint64_t cost = pending_.size();
    load_pending(in, cost, pending_.emplace_back());
  }
  const uint64_t next_cost = in.u64();
  if (next_cost >= std::max<size_t>(1, pending_.size())) in.fail();
  load_pending(in, next_cost, next_);
  for (uint64_t n = in.count(); n > 0; --n) {
    const uint64_t key = in.fixed64();
    cache_[key] = in.u64();
  }
  return in.ok();
}

}  // namespace slalom
