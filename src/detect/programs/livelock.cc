#include "detect/programs/livelock.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "base/hash.h"

namespace slalom {
namespace {

// A place repeated this often in the windows belongs to the loop, not to the way into it.
constexpr uint64_t kLooping = 3;
constexpr size_t kPlacesInTitle = 4;
// A wait polls few values. A loop over more values counts as a computation whose progress is in registers.
constexpr size_t kMostPolled = 64;
// A value that advances by the same stride this often in a row is a counter.
constexpr uint32_t kStrides = 2;

// Returns whether a loop can wait with this operation: it reads a value that others may change, and does not
// block.
bool is_read(OpKind op, bool atomically) {
  return op == OpKind::AtomicLoad || op == OpKind::ReadModifyWrite || op == OpKind::CompareExchange ||
         op == OpKind::TryLock || (op == OpKind::Load && !atomically);
}

}  // namespace

inline void LivelockDetector::note(Site site, ObjectId object, uint64_t value) {
  if (site.step.raw >= state_.next_window) [[unlikely]]
    advance(site.step.raw);
  if (site.agent != state_.last.agent || state_.newer.agents.empty()) state_.newer.agents[site.agent.raw];
  // Assigned field by field: copying a struct that was just built on the stack stalls.
  state_.last.step = site.step;
  state_.last.agent = site.agent;
  state_.last.pc = site.pc;
  state_.last.op = site.op;
  if (state_.newer.full()) {
    state_.last_new = site.step;
    return;
  }
  const uint64_t what = combine(site.agent.raw ^ std::rotl(site.pc.raw, 24) ^ std::rotl(object.raw, 48),
                                value * kOpKinds + static_cast<uint64_t>(site.op));
  if (auto* known = state_.newer.done.find(what); known != nullptr) {
    ++known->times;
    return;
  }
  if (counts(site, object, value)) {
    state_.newer.counted = true;
    return;
  }
  if (state_.older.done.find(what) == nullptr) state_.last_new = site.step;
  state_.newer.done.add(what, site);
}

// Returns whether a counter takes this new value. Also records new addresses.
bool LivelockDetector::counts(const Site& site, ObjectId object, uint64_t value) {
  const uint64_t where = combine(site.agent.raw ^ std::rotl(site.pc.raw, 24),
                                 object.raw * kOpKinds + static_cast<uint64_t>(site.op));
  LivelockState::Stride* known = state_.newer.places.find(where);
  if (known == nullptr) {
    const LivelockState::Stride* before = state_.older.places.find(where);
    if (before == nullptr) state_.last_new_place = site.step;
    LivelockState::Stride& added = state_.newer.places[where];
    if (before == nullptr) {
      added.value = value;
      return false;
    }
    known = &(added = *before);
  }
  const uint64_t stride = value - known->value;
  known->same = stride != 0 && stride == known->stride ? known->same + 1 : 0;
  known->stride = stride;
  known->value = value;
  return known->same >= kStrides && (site.op == OpKind::Load || site.op == OpKind::Store);
}

void LivelockDetector::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  for (const Access& access : accesses) {
    const Site site{Step{header.first_step.raw + access.retired}, header.agent, access.pc(), access.op()};
    note(site, access.address(), access.value);
  }
}

void LivelockDetector::on_event(const Event& event) {
  if (event.op == OpKind::Wake || event.op == OpKind::Note) return;
  note(Site::of(event), event.object, combine(static_cast<uint64_t>(event.value), event.state));
  if (event.op == OpKind::TimerFire) state_.newer.waited = true;
  if (event.op != OpKind::Yield) return;
  ++state_.newer.agents[event.agent.raw];
  auto& yields = state_.newer.yields;
  const uint64_t where = combine(event.agent.raw, event.pc.raw);
  if (auto* known = yields.find(where); known != nullptr) {
    ++known->times;
  } else {
    yields.add(where, Site::of(event));
  }
}

void LivelockDetector::advance(uint64_t step) {
  while (step >= state_.next_window) {
    std::swap(state_.older, state_.newer);
    state_.newer.clear();
    state_.newer.start = state_.next_window;
    // 16, 24, 32, 48, 64, 96 ...: the two windows always cover at least the last quarter.
    state_.next_window =
        std::has_single_bit(state_.next_window) ? state_.next_window / 2 * 3 : state_.next_window / 3 * 4;
  }
}

void LivelockDetector::on_end(const Outcome& outcome) {
  const auto* limit = std::get_if<LimitReached>(&outcome);
  if (limit == nullptr || limit->limit != LimitReached::Limit::Steps || limit->enabled.empty()) return;
  if (state_.last.step.raw + 1 < limit->steps / 2) return report_silent(*limit);

  std::map<uint64_t, uint64_t> yields;  // of each agent that ran
  for (const auto* window : {&state_.older, &state_.newer})
    window->agents.for_each([&](uint64_t agent, uint64_t count) { yields[agent] += count; });
  const bool yielded =
      std::any_of(yields.begin(), yields.end(), [](auto& entry) { return entry.second > 0; });
  const bool fair = std::all_of(limit->enabled.begin(), limit->enabled.end(),
                                [&](AgentId agent) { return yields.contains(agent.raw); });
  const bool waited = state_.older.waited || state_.newer.waited;
  const bool counted = state_.older.counted || state_.newer.counted;
  const bool repeats = is_old(state_.last_new);
  if (!fair) {
    const bool few =
        state_.older.done.all.size() <= kMostPolled && state_.newer.done.all.size() <= kMostPolled;
    if (yields.size() == 1 && !yielded && !waited && repeats && few && polls(counted))
      report_loop(BugKind::GoodSamaritan, false);
    return;
  }
  // Threads whose memory is not seen are judged by their other operations: their locks or their yields.
  const bool full = state_.older.full() || state_.newer.full();
  const bool gets_on = yielded ? full || !is_old(state_.last_new_place) : !repeats;
  if (!gets_on && (!sees_memory() || polls(counted && !yielded))) report_loop(BugKind::Livelock, yielded);
}

// Returns whether the step lies outside the latter half of the windows.
bool LivelockDetector::is_old(Step step) const {
  return 2 * step.raw <= state_.older.start + state_.last.step.raw;
}

// Returns whether the windows repeat an operation with which a loop can wait, with the same value each time.
bool LivelockDetector::polls(bool atomically) const {
  const auto is_poll = [&](const LivelockState::Repeated& entry) {
    return entry.times >= kLooping && is_read(entry.first.op, atomically);
  };
  return std::ranges::any_of(state_.older.done.all, is_poll) ||
         std::ranges::any_of(state_.newer.done.all, is_poll);
}

bool LivelockDetector::sees_memory() const {
  const auto is_access = [](const LivelockState::Repeated& entry) { return is_memory(entry.first.op); };
  return state_.older.counted || state_.newer.counted ||
         std::ranges::any_of(state_.older.done.all, is_access) ||
         std::ranges::any_of(state_.newer.done.all, is_access);
}

// Reports code that used up the limit without a visible operation: the agent that ran last still runs.
void LivelockDetector::report_silent(const LimitReached& limit) {
  const bool last_runs =
      std::find(limit.enabled.begin(), limit.enabled.end(), state_.last.agent) != limit.enabled.end();
  if (!last_runs && limit.enabled.size() > 1) return;
  const AgentId agent = last_runs ? state_.last.agent : limit.enabled.front();
  const bool alone = limit.enabled.size() == 1;
  Verdict verdict;
  verdict.kind = alone ? BugKind::Livelock : BugKind::GoodSamaritan;
  verdict.title = fmt::format("{}{} does nothing visible{}",
                              alone ? "livelock: " : "spins without yielding: ", names_.role(agent),
                              last_runs ? fmt::format(" after {}", names_.place(state_.last.pc)) : "");
  verdict.detail = fmt::format("{} ran to the limit of {} steps.", names_.agent(agent), limit.steps);
  if (last_runs) verdict.evidence.push_back(state_.last.evidence("the last visible operation"));
  report(std::move(verdict));
}

void LivelockDetector::report_loop(BugKind kind, bool at_yields) {
  std::map<std::string, LivelockState::Repeated> places;
  const auto add_places = [&](uint64_t at_least) {
    for (const auto* window : {&state_.older, &state_.newer}) {
      for (const LivelockState::Repeated& entry : (at_yields ? window->yields : window->done).all) {
        if (entry.times < at_least) continue;
        LivelockState::Repeated& place = places[names_.place(entry.first.pc)];
        if (place.times == 0) place.first = entry.first;
        place.times += entry.times;
      }
    }
  };
  add_places(kLooping);
  if (places.empty()) add_places(1);

  Verdict verdict;
  verdict.kind = kind;
  std::vector<std::string> listed;
  for (const auto& [place, looping] : places) {
    if (listed.size() == kPlacesInTitle) {
      listed.push_back("...");
      break;
    }
    listed.push_back(place);
    verdict.evidence.push_back(looping.first.evidence(fmt::format("done {} times lately", looping.times)));
  }
  const bool samaritan = kind == BugKind::GoodSamaritan;
  verdict.title =
      fmt::format("{} {}", samaritan ? "spins without yielding at" : "livelock at", fmt::join(listed, ", "));
  verdict.detail = samaritan ? fmt::format("{} ran alone while others could run, and never yielded to them.",
                                           names_.agent(state_.last.agent))
                             : "Every agent that can run does run, and none of them gets anywhere.";
  report(std::move(verdict));
}

}  // namespace slalom
