// SigningKey: distinguishes the capsules that this user's slalom made from capsules of other origin.
//
// The key is a file of 32 random bytes in the user's configuration folder, which only the user can read. The
// signature of a capsule is the HMAC-SHA-256 of its contents with that key, so only a process that can read
// the key can make one. (A checksum such as XXH3 is no substitute, because anyone can compute it.) Not for
// secrecy, and not for proving to others who made a capsule.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"

namespace slalom {

class SigningKey {
 public:
  static constexpr size_t kSize = 32;
  using Bytes = std::array<uint8_t, kSize>;

  // $XDG_CONFIG_HOME/slalom/capsule.key, or below ~/.config.
  static Result<std::filesystem::path> path();
  // Fails if there is no key yet, or if other users may know it.
  static Result<SigningKey> load();
  // As load(), but makes the key if there is none. Processes that do this at the same time get the same key.
  static Result<SigningKey> load_or_make();

  explicit SigningKey(const Bytes& bytes) : bytes_(bytes) {}
  std::vector<uint8_t> sign(std::span<const uint8_t> contents) const;
  bool signed_by_it(std::span<const uint8_t> contents, std::span<const uint8_t> signature) const;

 private:
  Bytes bytes_;
};

}  // namespace slalom
