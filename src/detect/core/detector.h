// Detector: watches one execution and reports what is wrong with it.
//
// A detector consumes accesses, events and the outcome, nothing else. Its verdicts are therefore the same
// live and offline (TraceReader, TraceLog), however accesses are cut into batches. Its whole state is a
// value, which checkpoints save and restore many times a second. Concrete detectors derive from
// StatefulDetector<S>, where S is a copyable struct (vectors and FlatMaps of plain records); StatefulDetector
// implements save, restore and reset. Detectors make verdicts in on_end(), so that S holds no strings. Not
// for steering the search. How to add a detector: docs/howto-detector.md.
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

// A place in an execution. Detectors keep Sites and turn them into Evidence.
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

  // If false, the detector gets no accesses. Most detectors need only events.
  virtual bool wants_accesses() const { return false; }
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event&) override {}
  // Called before on_end() with the latest step that the set has seen, accesses included.
  void set_last_step(Step step) { last_step_ = step; }
  void harvest(std::vector<Verdict>& verdicts) final {
    std::move(found_.begin(), found_.end(), std::back_inserter(verdicts));
    found_.clear();
  }

 protected:
  // Keeps a verdict for harvest(), unless there is one with the same title: an execution reports each bug
  // once.
  void report(Verdict verdict);
  void forget_reports() { found_.clear(); }
  Step last_step() const { return last_step_; }  // valid in on_end()

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
    // S may have a clear() that keeps its memory from one execution to the next.
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
