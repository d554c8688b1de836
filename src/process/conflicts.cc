#include "process/conflicts.h"

#include <algorithm>

namespace slalom {

void Conflicts::learn(uint64_t pc) {
  const auto at = std::lower_bound(feedback_.places.begin(), feedback_.places.end(), Place{pc});
  if (at == feedback_.places.end() || at->raw != pc) feedback_.places.insert(at, Place{pc});
}

void Conflicts::begin_or_end(const preload::Record& event) {
  if (event.op == OpKind::Spawn && event.other != preload::kNoAgent) life(event.other).born = event.step;
  if (event.op == OpKind::Exit) life(event.agent).ended = true;
}

void Conflicts::add(const preload::Record& access) {
  Touched& touched = touched_[access.object / kGranule];
  const uint32_t who = access.agent + 1;
  const auto conflict = [&](uint32_t other, uint64_t other_pc, uint64_t other_step) {
    if (other == 0 || other == who || other_step < life(access.agent).born || life(other - 1).ended) return;
    learn(access.pc);
    learn(other_pc);
  };
  conflict(touched.writer, touched.write_pc, touched.write_step);
  if (access.wrote) conflict(touched.reader, touched.read_pc, touched.read_step);
  if (access.wrote) {
    touched.writer = who;
    touched.write_pc = access.pc;
    touched.write_step = access.step;
    touched.reader = 0;
  } else {
    touched.reader = who;
    touched.read_pc = access.pc;
    touched.read_step = access.step;
  }
}

}  // namespace slalom
