#include "detect/core/clocks.h"

#include <algorithm>

namespace slalom {

void ClockTable::widen(uint32_t agents) {
  if (agents <= width_) return;
  const uint32_t wider = std::max(agents, 2 * width_);
  std::vector<uint32_t> words(static_cast<size_t>(rows_) * wider);
  for (uint32_t i = 0; i < rows_; ++i)
    std::copy_n(row(i), width_, words.data() + static_cast<size_t>(i) * wider);
  words_ = std::move(words);
  width_ = wider;
}

void ClockTable::join(uint32_t into, uint32_t from) {
  uint32_t* target = row(into);
  const uint32_t* source = row(from);
  for (uint32_t i = 0; i < width_; ++i) target[i] = std::max(target[i], source[i]);
}

}  // namespace slalom
