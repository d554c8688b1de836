// A capsule: a Finding in one file, which replays on any host. A user may sign it with a key
// (finding/signing_key.h).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "finding/finding.h"

namespace slalom {

class SigningKey;

inline constexpr const char* kCapsuleName = "capsule.slalom";  // in the folder of a finding

// A capsule that was read, with the data to check its signature.
struct Capsule {
  Finding finding;
  std::vector<uint8_t> contents;   // the encoded finding, as in the file
  std::vector<uint8_t> signature;  // empty if unsigned
  bool signed_by(const SigningKey& key) const;
};

// `key`: nullptr leaves the capsule unsigned.
Result<std::vector<uint8_t>> pack_capsule(const Finding& finding, const SigningKey* key);
Result<void> save_capsule(const std::filesystem::path& path, const Finding& finding, const SigningKey* key);
// `path` may also be the folder in which a store keeps it.
Result<Capsule> open_capsule(const std::filesystem::path& path);
Result<Capsule> parse_signed_capsule(std::span<const uint8_t> file);

// Read the finding alone.
Result<Finding> load_capsule(const std::filesystem::path& path);
Result<Finding> parse_capsule(std::span<const uint8_t> file);

}  // namespace slalom
