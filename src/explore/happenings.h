// Happenings: what happened in an execution, one after the other, so that a second one with the same schedule
// can be compared with it. Only the beginning of very long ones. Not a trace: see trace/trace_log.h.
// Of a plain store an access gives the value before it. Where executions share a heap and stacks
// (slalom::check) that is what an earlier one left behind and means nothing: BeforeStores::Ignored.
#pragma once

#include <string>
#include <vector>

#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

class Happenings final : public EventSink {
 public:
  static constexpr size_t kMost = 1 << 20;
  enum class BeforeStores : uint8_t { Compared, Ignored };
  explicit Happenings(BeforeStores before = BeforeStores::Compared) : before_(before) {}

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

  BeforeStores before_;
  std::vector<Happened> all_;
};

}  // namespace slalom
