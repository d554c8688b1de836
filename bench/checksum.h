// A sink of the tap that looks at all it gets: every access and event goes into a checksum. What the
// benchmarks of observed execution use, so that the figure stands for records that somebody reads.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "vm/cpu/observe/tap.h"

namespace slalom::vm {

class Checksum : public TapSink {
 public:
  void on_batch(const Cpu&, std::span<const Access> accesses, uint64_t first_step) override {
    uint64_t sum = first_step;
    for (const Access& access : accesses) {
      const auto words = std::bit_cast<std::array<uint64_t, 4>>(access);
      sum = std::rotl(sum, 5) ^ (words[0] + words[1] * 3 + words[2] * 5 + words[3] * 7);
    }
    value_ ^= sum;
    accesses_ += accesses.size();
  }
  void on_event(const Cpu&, const CpuEvent& event, uint64_t step) override { value_ += event.pc ^ step; }

  uint64_t value() const { return value_; }
  uint64_t accesses() const { return accesses_; }

 private:
  uint64_t value_ = 0, accesses_ = 0;
};

}  // namespace slalom::vm
