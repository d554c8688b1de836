// Unpacks the compression formats of kernels and modules, in memory.
//
// The input is not trusted. Memory grows with the unpacked data, up to a limit, not with the sizes in
// headers.
//
// Not with libarchive: it refuses xz, zstd and lz4 data that the length follows which kernel builds append.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

enum class Compression { None, Gzip, Xz, Lzma, Zstd, Lz4Legacy, Bzip2, Lzo };

std::string_view name_of(Compression compression);
// Detects the format by the first bytes.
Compression compression_of(std::span<const uint8_t> bytes);
// Returns true if unpack() supports the format.
bool can_unpack(Compression compression);

// `bytes` may continue after the end of the compressed data. More than `limit` bytes of output are an error.
Result<std::vector<uint8_t>> unpack(std::span<const uint8_t> bytes, uint64_t limit);

}  // namespace slalom::vm
