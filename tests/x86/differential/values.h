// Values that are likely to reveal errors: edges of widths, signs and pages.
#pragma once

#include "base/rng.h"
#include "case.h"

namespace slalom::vm::diff {

class Values {
 public:
  explicit Values(Rng& rng) : rng_(rng) {}

  bool chance(unsigned percent) { return rng_.below(100) < percent; }
  unsigned below(unsigned bound) { return static_cast<unsigned>(rng_.below(bound)); }
  uint64_t any() { return rng_.next(); }

  uint64_t integer();
  // An address in the data pages, at their edges, or outside of them, for an access of `size` bytes.
  uint64_t address(unsigned size, bool aligned);
  uint64_t selector();
  uint32_t single_bits();
  uint64_t double_bits();
  void extended(uint8_t* ten_bytes);
  uint64_t vector_half();
  uint64_t flags();
  void floats(FloatState& state, bool x87, bool mmx);
  void background(Background& page);

 private:
  Rng& rng_;
};

}  // namespace slalom::vm::diff
