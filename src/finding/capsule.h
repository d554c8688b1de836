// A capsule: a Finding in one file, which replays on any host. It may be signed with the key of the user who
// made it (finding/signing_key.h).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"
#include "finding/finding.h"

namespace slalom {

class SigningKey;

inline constexpr const char* kCapsuleName = "capsule.slalom";  // in the folder of a finding

// A capsule that was read, with what a signature is checked against.
struct Capsule {
  Finding finding;
  std::vector<uint8_t> contents;   // the encoded finding, as it was in the file
  std::vector<uint8_t> signature;  // empty: it is not signed
  bool signed_by(const SigningKey& key) const;
};

// `key`: nullptr leaves it unsigned.
Result<std::vector<uint8_t>> pack_capsule(const Finding& finding, const SigningKey* key);
Result<void> save_capsule(const std::filesystem::path& path, const Finding& finding, const SigningKey* key);
Result<Capsule> open_capsule(const std::filesystem::path& path);  // or the folder that a store keeps it in
Result<Capsule> parse_signed_capsule(std::span<const uint8_t> file);

// The finding alone.
Result<Finding> load_capsule(const std::filesystem::path& path);
Result<Finding> parse_capsule(std::span<const uint8_t> file);

}  // namespace slalom
