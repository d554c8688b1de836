// Unpacks what kernels and modules are compressed with, in memory.
//
// The input is trusted in nothing: memory grows with what is really unpacked, up to a limit, never with what
// a header promises.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

enum class Compression { None, Gzip, Xz, Lzma, Zstd, Lz4Legacy, Bzip2, Lzo };

std::string_view name_of(Compression compression);
// By the first bytes.
Compression compression_of(std::span<const uint8_t> bytes);
// Whether unpack() can do it.
bool can_unpack(Compression compression);

// `bytes` may go on after the end of the compressed data. More than `limit` bytes of output are an error.
Result<std::vector<uint8_t>> unpack(std::span<const uint8_t> bytes, uint64_t limit);

}  // namespace slalom::vm
