// For harnesses whose input is the payload of a file: the file around it is made here, so that every mutation
// gets past the checksum.
#pragma once

#include <span>

#include "base/rng.h"
#include "base/text/printable.h"
#include "fuzz/harness.h"
#include "trace/files/serialise.h"

namespace slalom {

template <typename T>
std::vector<uint8_t> encoded(const T& value) {
  ByteWriter out;
  encode(out, value);
  return out.take();
}

// Reads the payload as a file of this kind. What can be read must survive being written and read again.
template <typename T, typename Parse, typename Use>
void fuzz_payload(FileKind kind, std::span<const uint8_t> payload, Parse parse, Use use) {
  const Result<T> value = parse(*pack_container(kind, payload));
  if (!value.ok()) return;
  const Result<T> again = parse(*to_file(kind, *value));
  CHECK(again.ok() && encoded(*again) == encoded(*value), "a {} changed when written again", name(kind));
  use(*value);
}

template <typename Make>
std::vector<std::vector<uint8_t>> encoded_seeds(Make make) {
  std::vector<std::vector<uint8_t>> seeds;
  for (uint64_t i = 0; i < 40; ++i) {
    Rng rng(1, i);
    seeds.push_back(encoded(make(rng)));
  }
  return seeds;
}

}  // namespace slalom
