// Detector: looks at one execution and says what is wrong with it.
//
// A pure consumer: it sees accesses, events and the outcome, nothing else, so its verdicts are the same live,
// offline (TraceLog::replay_into) and however accesses are cut into batches. Its whole state is a value,
// which a checkpoint saves and restores many times a second: concrete detectors derive from
// StatefulDetector<S> with S a copyable struct (vectors and FlatMaps of plain records), and save, restore and
// reset come for free. Verdicts are made in on_end(), so that S holds no strings.
// Not for steering the search. How to add one: docs/howto-detector.md.
#pragma once

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

// Where something happened: what detectors keep, to become an Evidence in a verdict.
struct Site {
  Step step;
  AgentId agent;
  Place pc;
  OpKind op = OpKind::None;

  static Site of(const Event& event) { return {event.step, event.agent, event.pc, event.op}; }
  Evidence evidence(std::string text) const { return {step, agent, pc, std::move(text)}; }
};

class Detector : public Observer {
 public:
  explicit Detector(const Names& names) : names_(names) {}

  // A detector that says false is not told of accesses: most live on events alone.
  virtual bool wants_accesses() const { return false; }
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event&) override {}
  // Before on_end(): the latest step of all that the set was told, accesses included.
  void set_last_step(Step step) { last_step_ = step; }
  void harvest(std::vector<Verdict>& verdicts) final {
    std::move(found_.begin(), found_.end(), std::back_inserter(verdicts));
    found_.clear();
  }

 protected:
  // Keeps a verdict for harvest(), unless one with its title is there: an execution tells each bug once.
  void report(Verdict verdict);
  void forget_reports() { found_.clear(); }
  Step last_step() const { return last_step_; }  // in on_end()

  const Names& names_;

 private:
  Step last_step_;
  std::vector<Verdict> found_;
};

template <typename S>
class StatefulDetector : public Detector {
 public:
  using Detector::Detector;

  void reset() final {
    forget_reports();
    // S may offer clear() to keep its memory from one execution to the next.
    if constexpr (requires { state_.clear(); }) {
      state_.clear();
    } else {
      state_ = S{};
    }
  }
  std::unique_ptr<Observer::State> save() const final { return std::make_unique<Saved>(state_); }
  void restore(const Observer::State& state) final {
    const auto* saved = dynamic_cast<const Saved*>(&state);
    CHECK(saved != nullptr, "a detector was given the state of another one");
    forget_reports();
    state_ = saved->value;
  }

 protected:
  S state_;

 private:
  struct Saved final : Observer::State {
    explicit Saved(const S& state) : value(state) {}
    S value;
  };
};

}  // namespace slalom
