// What the tests of trace files share: saving a trace, and the names that it must hold.
#pragma once

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/source_dir.h"
#include "trace/files/trace_stream.h"
#include "trace/trace_log.h"
#include "unit/base/temporary_directory.h"
#include "unit/trace/made_up_names.h"

namespace slalom {

inline const TraceInfo kInfo{.kind = "toy",
                             .target = "a bank",
                             .detectors = "race,heap",
                             .recorded = {.accesses = true, .memory = true},
                             .races_count = false};

inline std::string written(const TraceLog& log, const Names& names = MadeUpNames(),
                           const TraceInfo& info = kInfo) {
  const TemporaryDirectory directory;
  const auto writer = TraceWriter::create(directory / "t.slalom", info, names).value();
  log.replay_into(*writer);
  const Result<void> closed = writer->close();
  EXPECT_TRUE(closed.ok()) << closed.error().message;
  const std::vector<uint8_t> bytes = read_file(directory / "t.slalom").value();
  return {bytes.begin(), bytes.end()};
}

inline std::filesystem::path golden(const char* name) {
  return std::filesystem::path(source_dir()) / "tests/golden/formats" / name;
}

inline void expect_named(const Names& stored, const TraceLog& log) {
  const MadeUpNames live;
  std::map<AgentId, uint64_t> made;
  const auto place = [&](Place pc) {
    EXPECT_EQ(stored.place(pc), live.place(pc));
    EXPECT_EQ(stored.source(pc), live.source(pc));
    EXPECT_EQ(stored.line(pc), live.line(pc));
    for (const bool writes : {false, true}) EXPECT_EQ(stored.marking(pc, writes), live.marking(pc, writes));
  };
  const auto agent = [&](AgentId id) {
    if (!id) return;
    EXPECT_EQ(stored.agent(id), live.agent(id));
    EXPECT_EQ(stored.role(id), live.role(id));
  };
  for (const Event& event : log.events()) {
    agent(event.agent);
    agent(event.other);
    place(event.pc);
    EXPECT_EQ(stored.object(event.object), live.object(event.object));
    if (event.op == OpKind::Call) place(Place{event.object.raw});
    if (event.op == OpKind::SyscallEnter) {
      const uint64_t ordinal = made[event.agent]++;
      EXPECT_EQ(stored.system_call(event.agent, ordinal, event.value),
                live.system_call(event.agent, ordinal, event.value));
    }
    if (event.op == OpKind::SyscallExit) {
      EXPECT_EQ(stored.system_result(event.value), live.system_result(event.value));
    }
  }
  for (const TraceLog::Batch& batch : log.batches()) agent(batch.header.agent);
  for (const Access& access : log.accesses()) {
    place(access.pc());
    EXPECT_EQ(stored.object(access.address()), live.object(access.address()));
  }
  if (const auto* deadlock = std::get_if<Deadlocked>(&log.outcome()))
    for (const auto& waiting : deadlock->waiting) {
      agent(waiting.agent);
      place(waiting.pc);
      EXPECT_EQ(stored.object(waiting.object), live.object(waiting.object));
      for (const AgentId holder : waiting.held_by) agent(holder);
    }
  if (const auto* fault = std::get_if<Faulted>(&log.outcome())) {
    agent(fault->agent);
    place(fault->pc);
  }
}

}  // namespace slalom
