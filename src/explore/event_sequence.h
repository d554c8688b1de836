// EventSequence: the accesses and events of an execution in order, for comparison with a second execution of
// the same schedule. It keeps only the beginning of very long executions. For traces see trace/trace_log.h.
//
// The values of plain stores are not compared. For a program, the recorded value is the value before the
// store, which earlier calls or executions may have left on the stack or the heap.
#pragma once

#include <string>
#include <vector>

#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

class EventSequence final : public EventSink {
 public:
  static constexpr size_t kMaxItems = 1 << 20;

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}
  void clear() { items_.clear(); }
  bool full() const { return items_.size() == kMaxItems; }

  // Describes the first difference: which agent did what, in both. Empty if there is none.
  static std::string difference(const EventSequence& first, const EventSequence& second, const Names& names);

 private:
  struct Item {
    AgentId agent;
    OpKind op = OpKind::None;
    ObjectId object;
    Place pc;
    int64_t value = 0;
    bool operator==(const Item&) const = default;
  };
  std::string in_words(size_t at, const Names& names) const;

  std::vector<Item> items_;
};

}  // namespace slalom
