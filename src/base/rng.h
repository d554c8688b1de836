// Rng: a small, fast generator whose stream depends only on its seeds (xoshiro256**, Blackman and Vigna).
//
// Execution i of a search draws from Rng(seed, i), so its result does not depend on the worker that runs it.
// Not for cryptography.
#pragma once

#include <array>
#include <cstdint>

#include "base/hash.h"

namespace slalom {

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) {
    uint64_t x = combine(seed, stream);
    for (auto& word : state_) word = mix(x += 0x9e3779b97f4a7c15u);
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // Returns a uniform number in [0, bound), without modulo bias. `bound` must be positive.
  uint64_t below(uint64_t bound) {
    auto product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = -bound % bound;
      while (static_cast<uint64_t>(product) < threshold)
        product = static_cast<unsigned __int128>(next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  static constexpr uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  std::array<uint64_t, 4> state_{};
};

}  // namespace slalom
