// TraceLog: a whole execution in memory: every access and event, in order. Reports are made from it.
// replay_into() makes the same calls as a live machine, so that detectors can run offline. Not for executions
// that are larger than memory: for those see trace/files/trace_stream.h.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "trace/sink.h"

namespace slalom {

class TraceLog : public EventSink {
 public:
  struct Batch {
    BatchHeader header;
    uint64_t first = 0;  // into accesses()
    uint64_t count = 0;
  };
  // One element of the order: batch number `index`, or event number `index`.
  struct Entry {
    enum class What : uint8_t { Batch, Event } what = What::Event;
    uint32_t index = 0;
  };

  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override { outcome_ = outcome; }

  void clear() { *this = TraceLog(); }
  void replay_into(EventSink& sink) const;

  const std::vector<Access>& accesses() const { return accesses_; }
  const std::vector<Batch>& batches() const { return batches_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Entry>& order() const { return order_; }
  const Outcome& outcome() const { return outcome_; }

  TraceLog() = default;
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;
  TraceLog(TraceLog&&) = default;
  TraceLog& operator=(TraceLog&&) = default;

 private:
  std::vector<Access> accesses_;
  std::vector<Batch> batches_;
  std::vector<Event> events_;
  std::vector<Entry> order_;
  // Event::text points into these. A deque keeps them in place when it grows or moves.
  std::deque<std::string> texts_;
  Outcome outcome_ = Abandoned{"the execution has not ended"};
};

}  // namespace slalom
