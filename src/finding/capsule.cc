#include "finding/capsule.h"

#include "base/log.h"
#include "finding/signing_key.h"
#include "trace/files/serialise.h"

namespace slalom {
namespace {

constexpr uint16_t kFirstSigned = 4;  // the first version with room for a signature

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool Capsule::signed_by(const SigningKey& key) const {
  return key.signed_by_it(contents, signature);
}

Result<std::vector<uint8_t>> pack_capsule(const Finding& finding, const SigningKey* key) {
  ByteWriter contents;
  encode(contents, finding);
  ByteWriter payload;
  payload.text(text_of(contents.bytes()));
  payload.text(key == nullptr ? "" : text_of(key->sign(contents.bytes())));
  return pack_container(FileKind::Capsule, payload.bytes());
}

Result<void> save_capsule(const std::filesystem::path& path, const Finding& finding, const SigningKey* key) {
  TRY_ASSIGN(const std::vector<uint8_t> file, pack_capsule(finding, key));
  return write_file(path, file);
}

Result<Capsule> parse_signed_capsule(std::span<const uint8_t> file) {
  TRY_ASSIGN(std::vector<uint8_t> payload, unpack_container(file, FileKind::Capsule));
  const auto malformed = [] { return error("malformed: its contents are no capsule; write it again"); };
  Capsule capsule;
  if (container_version(file) < kFirstSigned) {
    capsule.contents = std::move(payload);
  } else {
    ByteReader in(payload);
    const std::string contents = in.text(), signature = in.text();
    if (!in.ok() || !in.at_end() || (!signature.empty() && signature.size() != SigningKey::kSize))
      return malformed();
    capsule.contents.assign(contents.begin(), contents.end());
    capsule.signature.assign(signature.begin(), signature.end());
  }
  ByteReader in(capsule.contents);
  decode(in, capsule.finding);
  if (!in.ok() || !in.at_end()) return malformed();
  return capsule;
}

Result<Capsule> open_capsule(const std::filesystem::path& path) {
  std::error_code none;
  const std::filesystem::path file = std::filesystem::is_directory(path, none) ? path / kCapsuleName : path;
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(file));
  auto capsule = parse_signed_capsule(bytes);
  if (!capsule.ok()) {
    DEBUG_LOG(Finding, "refused {}: {}", file.string(), capsule.error().message);
    return error("{}: {}", file.string(), capsule.error().message);
  }
  DEBUG_LOG(Finding, "read {}, {}signed: \"{}\"", file.string(), capsule->signature.empty() ? "un" : "",
            capsule->finding.verdict.title);
  return capsule;
}

Result<Finding> load_capsule(const std::filesystem::path& path) {
  TRY_ASSIGN(Capsule capsule, open_capsule(path));
  return std::move(capsule.finding);
}

Result<Finding> parse_capsule(std::span<const uint8_t> file) {
  TRY_ASSIGN(Capsule capsule, parse_signed_capsule(file));
  return std::move(capsule.finding);
}

}  // namespace slalom
