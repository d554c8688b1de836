#include "process/conflicts.h"

#include <algorithm>

namespace slalom {

void Conflicts::learn(uint64_t pc) {
  const auto at = std::lower_bound(feedback_.places.begin(), feedback_.places.end(), Place{pc});
  if (at == feedback_.places.end() || at->raw != pc) feedback_.places.insert(at, Place{pc});
}

void Conflicts::add(const preload::Record& access) {
  constexpr uint64_t kGranule = 8;
  Touched& touched = touched_[access.object / kGranule];
  const uint32_t who = access.agent + 1;
  const auto conflict = [&](uint64_t other_pc) {
    learn(access.pc);
    learn(other_pc);
  };
  if (touched.writer != 0 && touched.writer != who) conflict(touched.write_pc);
  if (access.wrote && touched.reader != 0 && touched.reader != who) conflict(touched.read_pc);
  if (access.wrote) {
    touched.writer = who;
    touched.write_pc = access.pc;
    touched.reader = 0;
  } else {
    touched.reader = who;
    touched.read_pc = access.pc;
  }
}

}  // namespace slalom
