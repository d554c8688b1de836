#include "trace/trace_log.h"

namespace slalom {

void TraceLog::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  order_.push_back({Entry::What::Batch, static_cast<uint32_t>(batches_.size())});
  batches_.push_back({header, accesses_.size(), accesses.size()});
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
}

void TraceLog::on_event(const Event& event) {
  order_.push_back({Entry::What::Event, static_cast<uint32_t>(events_.size())});
  events_.push_back(event);
  if (!event.text.empty()) events_.back().text = texts_.emplace_back(event.text);
}

void TraceLog::replay_into(EventSink& sink) const {
  for (const Entry& entry : order_) {
    if (entry.what == Entry::What::Event) {
      sink.on_event(events_[entry.index]);
    } else {
      const Batch& batch = batches_[entry.index];
      sink.on_accesses(std::span(accesses_).subspan(batch.first, batch.count), batch.header);
    }
  }
  sink.on_end(outcome_);
}

}  // namespace slalom
