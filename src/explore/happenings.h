// Happenings: what happened in an execution, one after the other, so that a second one with the same schedule
// can be compared with it. Only the beginning of very long ones. Not a trace: see trace/trace_log.h.
// The value of a plain store is not compared: of a program it is the value before the store, which may be
// what earlier calls or executions left behind on the stack or the heap.
#pragma once

#include <string>
#include <vector>

#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

class Happenings final : public EventSink {
 public:
  static constexpr size_t kMost = 1 << 20;

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}
  void clear() { all_.clear(); }
  bool full() const { return all_.size() == kMost; }

  // Where the two first differ: who did what there, in both. Empty: nowhere.
  static std::string difference(const Happenings& first, const Happenings& second, const Names& names);

 private:
  struct Happened {
    AgentId agent;
    OpKind op = OpKind::None;
    ObjectId object;
    Place pc;
    int64_t value = 0;
    bool operator==(const Happened&) const = default;
  };
  std::string in_words(size_t at, const Names& names) const;

  std::vector<Happened> all_;
};

}  // namespace slalom
