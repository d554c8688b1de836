#include "detect/detector_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text/split.h"
#include "detect/core/failure.h"
#include "detect/kernels/console.h"
#include "detect/kernels/kernel_heap.h"
#include "detect/kernels/kernel_interrupted.h"
#include "detect/kernels/kernel_leak.h"
#include "detect/kernels/kernel_livelock.h"
#include "detect/kernels/kernel_race.h"
#include "detect/programs/deadlock.h"
#include "detect/programs/heap.h"
#include "detect/programs/livelock.h"
#include "detect/programs/race.h"
#include "detect/programs/thread_leak.h"
#include "detect/programs/weak_memory.h"

namespace slalom {
namespace {

using MadeDetector = std::unique_ptr<Detector>;
template <class OneDetector>
MadeDetector make(const Names& names) {
  return std::make_unique<OneDetector>(names);
}
MadeDetector make_simultaneous(const Names& names) {
  return std::make_unique<KernelRaceDetector>(
      names, KernelRaceOptions{.mode = KernelRaceOptions::Mode::Simultaneous});
}

using For = DetectorInfo::For;
struct Row {
  DetectorInfo info;
  MadeDetector (*make)(const Names& names);  // nullptr for the two names of DeadlockDetector
};
constexpr bool kByDefault = true, kOnRequest = false;
constexpr std::string_view kDeadlock = "deadlock", kLostWakeup = "lost-wakeup";
constexpr Row kTable[] = {
    {{"failure", "failed assertions and crashes", kByDefault, For::Everything}, make<FailureDetector>},
    {{kDeadlock,
      "agents that wait for each other, or for what nobody will do",
      kByDefault,
      For::Everything,
      {.locks = true}},
     nullptr},
    {{kLostWakeup, "deadlocks after a signal that came before its waiter", kByDefault, For::Programs},
     nullptr},
    {{"livelock", "agents that run for ever without getting anywhere", kByDefault, For::Programs},
     make<LivelockDetector>},
    {{"heap", "use after free and double free", kByDefault, For::Programs}, make<HeapDetector>},
    {{"race", "data races, by happens-before", kByDefault, For::Programs, {.accesses = true}},
     make<RaceDetector>},
    {{"leak", "heap objects never freed", kOnRequest, For::Programs}, make<LeakDetector>},
    {{"thread-leak", "threads neither joined nor detached at the end", kOnRequest, For::Programs},
     make<ThreadLeakDetector>},
    {{"weak-memory",
      "outcomes that only a processor with store buffers gives",
      kOnRequest,
      For::Programs,
      {.accesses = true}},
     make<WeakMemoryDetector>},
    {{"console", "what a kernel says is wrong with it: oops, BUG, WARNING, lockups, damaged file systems",
      kByDefault, For::Kernels},
     make<ConsoleDetector>},
    {{"kernel-livelock", "flows of a kernel test, or its check, that go on to the limit", kByDefault,
      For::Kernels},
     make<KernelLivelockDetector>},
    {{"kernel-heap", "a kernel's memory: use after free, double free, invalid free", kByDefault, For::Kernels,
      Facilities::all()},
     make<KernelHeapDetector>},
    {{"kernel-race",
      "data races of a kernel, by happens-before",
      kByDefault,
      For::Kernels,
      {.accesses = true, .locks = true}},
     make<KernelRaceDetector>},
    {{"kernel-race-simultaneous",
      "of these, only the ones that a CPU made while another stood before its own access",
      kOnRequest,
      For::Kernels,
      {.accesses = true, .locks = true}},
     make_simultaneous},
    {{"kernel-interrupted",
      "what an interrupt wrote and the code that it interrupted stored over, having read it before",
      kOnRequest,
      For::Kernels,
      {.accesses = true, .locks = true}},
     make<KernelInterruptedDetector>},
    {{"kernel-leak",
      "a kernel's memory that stays allocated, but in no serial order of the calls",
      kOnRequest,
      For::Kernels,
      {.memory = true}},
     make<KernelLeakDetector>},
};

class Selection {
 public:
  void add(std::string_view name) {
    if (!has(name)) names_.push_back(name);
  }
  bool has(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 private:
  std::vector<std::string_view> names_;
};

// In the order of the table, which is the order of an execution's verdicts.
std::unique_ptr<DetectorSet> build(const Names& names, const Selection& selection) {
  auto set = std::make_unique<DetectorSet>();
  // One detector implements both names, because only it can decide which of the two a hang is.
  DeadlockDetector::Reports hangs{selection.has(kDeadlock), selection.has(kLostWakeup)};
  for (const Row& row : kTable) {
    if (row.make != nullptr) {
      if (selection.has(row.info.name)) set->add(row.make(names));
    } else if (hangs.deadlocks || hangs.lost_wakeups) {
      set->add(std::make_unique<DeadlockDetector>(names, std::exchange(hangs, {false, false})));
    }
  }
  return set;
}

std::string known_names() {
  std::string text;
  for (const Row& row : kTable) text += fmt::format("{}, ", row.info.name);
  return text + "default, all, kernel";
}

Result<Selection> select(std::string_view list) {
  Selection selection;
  for (const std::string_view word : split(list, ',')) {
    bool known = word == "default" || word == "all" || word == "kernel";
    for (const auto& [info, make] : kTable) {
      const bool for_programs = info.what != For::Kernels;
      const bool in_group = (word == "all" && for_programs) ||
                            (word == "default" && for_programs && info.by_default) ||
                            (word == "kernel" && info.what != For::Programs && info.by_default);
      if (word != info.name && !in_group) continue;
      selection.add(info.name);
      known = true;
    }
    if (!known) return error("unknown detector '{}': choose from {}", word, known_names());
  }
  return selection;
}

struct SetState : Observer::State {
  std::vector<std::unique_ptr<Observer::State>> parts;
  Step last;
};

}  // namespace

void DetectorSet::add(std::unique_ptr<Detector> detector) {
  if (detector->wants_accesses()) access_users_.push_back(detector.get());
  detectors_.push_back(std::move(detector));
}

void DetectorSet::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  if (!accesses.empty()) last_ = Step{header.first_step.raw + accesses.back().retired};
  for (Detector* detector : access_users_) detector->on_accesses(accesses, header);
}

void DetectorSet::on_event(const Event& event) {
  last_ = event.step;
  for (auto& detector : detectors_) detector->on_event(event);
}

void DetectorSet::on_end(const Outcome& outcome) {
  for (auto& detector : detectors_) {
    detector->set_last_step(last_);
    detector->on_end(outcome);
  }
}

void DetectorSet::reset() {
  last_ = {};
  for (auto& detector : detectors_) detector->reset();
}

std::unique_ptr<Observer::State> DetectorSet::save() const {
  auto state = std::make_unique<SetState>();
  state->last = last_;
  for (const auto& detector : detectors_) state->parts.push_back(detector->save());
  return state;
}

void DetectorSet::restore(const State& state) {
  const auto* saved = dynamic_cast<const SetState*>(&state);
  CHECK(saved != nullptr && saved->parts.size() == detectors_.size(),
        "the state of another set of detectors");
  last_ = saved->last;
  for (size_t i = 0; i < detectors_.size(); ++i) detectors_[i]->restore(*saved->parts[i]);
}

void DetectorSet::harvest(std::vector<Verdict>& verdicts) {
  for (auto& detector : detectors_) detector->harvest(verdicts);
}

std::vector<DetectorInfo> detector_catalogue() {
  std::vector<DetectorInfo> all;
  for (const Row& row : kTable) all.push_back(row.info);
  return all;
}

std::unique_ptr<DetectorSet> all_detectors(const Names& names) {
  auto set = select_detectors(names, "default");
  return *std::move(set);
}

Result<std::unique_ptr<DetectorSet>> select_detectors(const Names& names, std::string_view list) {
  TRY_ASSIGN(const Selection selection, select(list));
  return build(names, selection);
}

Result<bool> selects(std::string_view list, std::string_view name) {
  TRY_ASSIGN(const Selection selection, select(list));
  return selection.has(name);
}

Result<Facilities> needs_of(std::string_view list) {
  TRY_ASSIGN(const Selection selection, select(list));
  Facilities all;
  for (const auto& [info, make] : kTable)
    if (selection.has(info.name)) {
      all.locks = all.locks || info.needs.locks;
      all.memory = all.memory || info.needs.memory;
      all.accesses = all.accesses || info.needs.accesses;
    }
  return all;
}

}  // namespace slalom
