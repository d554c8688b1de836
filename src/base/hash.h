// Hash functions with the same results on every host, run and build. For digests, happens-before hashes and
// state hashes. Not for the iteration order of std::unordered_map, and not for file checksums (those are
// XXH3, see base/container.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace slalom {

constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t combine(uint64_t seed, uint64_t value) {
  return mix(seed * 0x9e3779b97f4a7c15u + value + 0x632be59bd9b4e019u);
}

template <typename... Rest>
constexpr uint64_t combine(uint64_t seed, uint64_t value, Rest... rest) {
  return combine(combine(seed, value), static_cast<uint64_t>(rest)...);
}

// Combines two words by both halves of their product. For hot paths, where the processor would wait for
// combine()'s longer chain.
constexpr uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
}

constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash);
}

}  // namespace slalom
