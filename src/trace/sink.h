// EventSink: the only interface through which machines report what happens.
// Observer: a sink that gives verdicts after an execution. Its state can be saved and restored, so that an
// execution may start at a checkpoint.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trace/access.h"
#include "trace/event.h"
#include "trace/outcome.h"
#include "trace/verdict.h"

namespace slalom {

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_accesses(std::span<const Access> accesses, const BatchHeader& header) = 0;
  virtual void on_event(const Event& event) = 0;
  virtual void on_end(const Outcome& outcome) = 0;
};

class Observer : public EventSink {
 public:
  class State {
   public:
    virtual ~State() = default;
  };
  virtual void reset() = 0;  // a new execution begins
  virtual std::unique_ptr<State> save() const = 0;
  virtual void restore(const State& state) = 0;
  virtual void harvest(std::vector<Verdict>& verdicts) = 0;  // after on_end
};

}  // namespace slalom
