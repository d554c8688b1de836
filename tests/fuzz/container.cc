#include "base/container.h"

#include <algorithm>

#include "base/rng.h"
#include "fuzz/harness.h"

namespace slalom {
namespace {

constexpr FileKind kKinds[] = {FileKind::Schedule, FileKind::Trace, FileKind::Capsule, FileKind::SearchState,
                               FileKind::Snapshot};

void try_all_kinds(std::span<const uint8_t> file) {
  for (const FileKind kind : kKinds) {
    const auto payload = unpack_container(file, kind);
    if (!payload.ok()) {
      CHECK(!payload.error().message.empty());
      continue;
    }
    const auto again = unpack_container(*pack_container(kind, *payload), kind);
    CHECK(again.ok() && *again == *payload, "a payload changed when written again");
  }
}

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  Rng rng(1);
  for (const FileKind kind : kKinds) {
    for (const uint64_t size : {0, 1, 50, 3000}) {
      std::vector<uint8_t> payload(size);
      seeds.push_back(*pack_container(kind, payload));
      std::generate(payload.begin(), payload.end(), [&] { return static_cast<uint8_t>(rng.below(5)); });
      seeds.push_back(*pack_container(kind, payload));
      std::generate(payload.begin(), payload.end(), [&] { return static_cast<uint8_t>(rng.next()); });
      seeds.push_back(*pack_container(kind, payload));
    }
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  try_all_kinds({data, size});
  // Once more with a stored size and a checksum that are right, to get past the first checks.
  std::vector<uint8_t> file(data, data + size);
  if (size < kContainerHeader) return 0;
  for (size_t i = 0; i < 8; ++i) file[24 + i] = static_cast<uint8_t>((size - kContainerHeader) >> (8 * i));
  repair_checksum(file);
  try_all_kinds(file);
  return 0;
}
