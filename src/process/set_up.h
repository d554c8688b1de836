// SetUp: the state at the end of a program's set-up: that of its only agent, and what slalom has concluded so
// far. Every execution that begins there starts with this state.
//
// Plain accesses and atomic operations are not kept. All operations of other agents come after them, so no
// detector needs them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "preload/protocol.h"
#include "trace/error_return.h"
#include "trace/event.h"
#include "trace/sink.h"

namespace slalom {

struct SetUp final : EventSink {
  struct Happened {
    Event event;
    std::string text;
  };
  std::vector<Happened> events;

  uint64_t id = 0, ops = 0, entry = 0;  // of the only agent
  uint64_t steps = 0, hash = 0;
  uint32_t text_used = 0, error_count = 0, uncontrolled = 0, calls = 0;
  ErrorLog errors;
  std::map<uint64_t, uint64_t> freed;
  std::deque<std::pair<uint64_t, uint64_t>> kept;
  uint64_t kept_bytes = 0;

  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override { events.push_back({event, std::string(event.text)}); }
  void on_end(const Outcome&) override {}
};

}  // namespace slalom
