#include "finding/capsule.h"

#include <nlohmann/json.hpp>

#include "finding/finding_json.h"
#include "finding/signing_key.h"
#include "fuzz/payload.h"
#include "unit/finding/random_finding.h"

namespace slalom {
namespace {

std::vector<uint8_t> with_version(std::vector<uint8_t> file, uint8_t version) {
  file[10] = version;
  repair_checksum(file);
  return file;
}

void use(std::span<const uint8_t> file) {
  const Result<Capsule> capsule = parse_signed_capsule(file);
  if (!capsule.ok()) return;
  const SigningKey key(SigningKey::Bytes{1, 2, 3});
  CHECK(!capsule->signed_by(key), "nobody can guess a signature");
  const Result<Capsule> again = parse_signed_capsule(*pack_capsule(capsule->finding, &key));
  CHECK(again.ok() && encoded(again->finding) == encoded(capsule->finding),
        "a capsule changed when written again");
  CHECK(again->signed_by(key), "a signature was lost");
  const std::string text = json_text(finding_json(capsule->finding, "capsule.slalom"));
  CHECK(nlohmann::json::accept(text), "not JSON: {}", text);
  CHECK(printable_lines(text) == text, "not safe to show: {}", text);
}

}  // namespace

// Payloads of the present version and of the one before, which had no signature.
std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds = encoded_seeds(random_finding);
  const SigningKey key(SigningKey::Bytes{4, 5, 6});
  for (uint64_t i = 0; i < 40; ++i) {
    Rng rng(2, i);
    const Finding finding = random_finding(rng);
    seeds.push_back(
        *unpack_container(*pack_capsule(finding, i % 2 == 0 ? &key : nullptr), FileKind::Capsule));
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  const std::vector<uint8_t> file = *pack_container(FileKind::Capsule, {data, size});
  use(file);
  use(with_version(file, 3));
  return 0;
}
