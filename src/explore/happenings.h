// Happenings: what happened in an execution, one after the other, so that a second one with the same schedule
// can be compared with it. Only the beginning of very long ones. Not a trace: see trace/trace_log.h.
#pragma once

#include <string>
#include <vector>

#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

class Happenings final : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}
  void clear() { all_.clear(); }

  // Where the two first differ: who did what there, in both.
  static std::string difference(const Happenings& first, const Happenings& second, const Names& names);

 private:
  static constexpr size_t kMost = 1 << 20;
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
