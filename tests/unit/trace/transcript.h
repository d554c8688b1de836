// Transcript: every call of a sink as text, as a second description of a trace without the encoder.
#pragma once

#include <fmt/format.h>

#include <string>

#include "trace/sink.h"
#include "trace/trace_log.h"

namespace slalom {

class Transcript final : public EventSink {
 public:
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    text_ += fmt::format("batch {} {} {} of {}\n", header.agent.raw, header.thread, header.first_step.raw,
                         accesses.size());
    for (const Access& a : accesses)
      text_ += fmt::format("  {:x} {} {} {} {:x} {} {:x} {:x} {} {} {} {}\n", a.pc().raw, uint64_t{a.op_bits},
                           name(a.modify()), uint64_t{a.size}, a.address().raw, uint64_t{a.retired}, a.value,
                           uint64_t{a.physical}, uint64_t{a.ring}, uint64_t{a.wrote}, uint64_t{a.unordered},
                           uint64_t{a.is_private});
  }
  void on_event(const Event& e) override {
    text_ += fmt::format("event {} {} {} {} {} {} {} {} \"{}\" {}\n", e.step.raw, e.agent.raw, name(e.op),
                         e.pc.raw, e.object.raw, e.state, e.other.raw, e.value, e.text, e.recognised);
  }
  void on_end(const Outcome& outcome) override {
    text_ += fmt::format("end {}", outcome.index());
    if (const auto* deadlock = std::get_if<Deadlocked>(&outcome)) {
      for (const auto& waiting : deadlock->waiting)
        text_ += fmt::format(" {} {} {} {} of {},", waiting.agent.raw, name(waiting.op), waiting.object.raw,
                             waiting.pc.raw, waiting.held_by.size());
      text_ += " " + deadlock->doubt;
    }
    if (const auto* limit = std::get_if<LimitReached>(&outcome))
      text_ += fmt::format(" {} {} {}", limit->steps, limit->enabled.size(), static_cast<int>(limit->limit));
    if (const auto* fault = std::get_if<Faulted>(&outcome))
      text_ += fmt::format(" {} {} {}", fault->agent.raw, fault->pc.raw, fault->what);
    if (const auto* abandoned = std::get_if<Abandoned>(&outcome))
      text_ += fmt::format(" {} {}", abandoned->why, static_cast<int>(abandoned->reason));
    text_ += "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline std::string transcript(const TraceLog& log) {
  Transcript sink;
  log.replay_into(sink);
  return sink.text();
}

}  // namespace slalom
