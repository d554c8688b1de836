// Random executions of three CPUs and their interrupts.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "unit/detect/kernel_stream.h"

namespace slalom::test {

inline constexpr int kCpus = 3;

struct Batch {  // or an event
  unsigned cpu = 0;
  bool interrupt = false;
  std::vector<Access> accesses;
  BatchHeader header;
  Event event;
  std::string text;
  AgentId agent() const { return header.agent; }
};

inline AgentId agent_of(unsigned cpu, bool interrupt) {
  const AgentId id = Stream::id(static_cast<int>(cpu));
  return interrupt ? id.interrupt(0x1c) : id;
}

// The actions of one context, not yet interleaved with others.
inline std::vector<Batch> random_program(Rng& rng, unsigned cpu, bool interrupt, Stream& maker) {
  std::vector<Batch> program;
  for (uint64_t left = 2 + rng.below(5); left > 0; --left) {
    Batch batch{.cpu = cpu, .interrupt = interrupt, .header = {.agent = agent_of(cpu, interrupt)}};
    if (rng.below(5) == 0) {
      batch.text = fmt::format("text {}", rng.below(100));
      batch.event = {.agent = batch.agent(), .op = OpKind::Lock, .object = ObjectId{8 * rng.below(3)}};
      program.push_back(batch);
      continue;
    }
    for (uint64_t i = 1 + rng.below(4); i > 0; --i) {
      const std::string place = fmt::format("p{}.{}.{}.{}", cpu, interrupt, program.size(), i);
      // Some memory is shared by all, some is private, some is shared by two contexts of one CPU.
      const uint64_t whose = rng.below(4);
      const uint64_t base = whose == 0   ? 0x1000
                            : whose == 1 ? 0x2000 + 0x100 * cpu
                                         : 0x3000 + 0x100 * cpu + 0x80 * interrupt;
      const uint32_t size = rng.below(6) == 0 ? 24 : 1u << rng.below(4);
      const uint64_t address =
          base + rng.below(4) * 8 + rng.below(8) / std::min(size, 8u) * std::min(size, 8u);
      const uint64_t kind = rng.below(8);
      if (kind == 0)
        batch.accesses.push_back(maker.make(OpKind::Call, place, 0x77, false, 0, 0x9000));
      else if (kind == 1)
        batch.accesses.push_back(maker.make(OpKind::ReadModifyWrite, place, address, true, size, 1));
      else
        batch.accesses.push_back(maker.make(kind < 5 ? OpKind::Store : OpKind::Load, place, address, kind < 5,
                                            size, rng.below(9)));
    }
    program.push_back(batch);
  }
  return program;
}

using Batches = std::vector<Batch>;

inline Batches interleave(Rng& rng, const std::vector<std::vector<Batch>>& programs) {
  Batches execution;
  std::vector<size_t> at(programs.size());
  uint64_t step = 0;
  for (;;) {
    std::vector<size_t> left;
    for (size_t i = 0; i < programs.size(); ++i)
      if (at[i] < programs[i].size()) left.push_back(i);
    if (left.empty()) return execution;
    const size_t next = left[rng.below(left.size())];
    Batch batch = programs[next][at[next]++];
    batch.header.first_step = batch.event.step = Step{step};
    for (Access& access : batch.accesses) access.retired = step++ - batch.header.first_step.raw;
    execution.push_back(std::move(batch));
  }
}

inline std::vector<std::vector<Batch>> random_programs(Rng& rng, Stream& maker) {
  std::vector<std::vector<Batch>> programs;
  for (unsigned cpu = 0; cpu < kCpus; ++cpu)
    for (const bool interrupt : {false, true}) programs.push_back(random_program(rng, cpu, interrupt, maker));
  return programs;
}

}  // namespace slalom::test
