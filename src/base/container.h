// The envelope of every file that slalom writes: its kind, its version, and a checksum of everything.
//
// The envelope itself never changes. If a payload changes, the version of its kind increases
// (docs/formats.md). A reader trusts nothing: each kind of damage has its own message that says what to do,
// and no input makes the reader allocate more than kMaxPayload. Not for the meaning of payloads: that belongs
// to their kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

enum class FileKind : uint16_t { Schedule = 1, Trace = 2, Capsule = 3, SearchState = 4, Snapshot = 5 };
std::string_view name(FileKind kind);  // "schedule", "search state"

// Bytes 0-7 magic, 8-9 kind, 10-11 version, 12-15 encoding, 16-23 payload size, 24-31 stored size, 32-39
// checksum of all other bytes, then the stored bytes. Numbers are little-endian. If the encoding is "blocks",
// both sizes are 0, the checksum is that of bytes 0-31, and blocks follow (base/block_file.h).
inline constexpr size_t kContainerHeader = 40;
inline constexpr uint64_t kMaxPayload = uint64_t{1} << 30;

// Returns the version of a file that unpack_container has accepted.
uint16_t container_version(std::span<const uint8_t> file);

// XXH3, 64 bits, of the bytes one after the other.
uint64_t checksum(std::span<const uint8_t> bytes, std::span<const uint8_t> more = {});

Result<std::vector<uint8_t>> pack_container(FileKind kind, std::span<const uint8_t> payload);
Result<std::vector<uint8_t>> unpack_container(std::span<const uint8_t> file, FileKind expected);

// Writes to a path that the user gave (write_output).
Result<void> write_container(const std::filesystem::path& path, FileKind kind,
                             std::span<const uint8_t> payload);
Result<std::vector<uint8_t>> read_container(const std::filesystem::path& path, FileKind expected);

bool has_container_magic(std::span<const uint8_t> file);  // false for other files than slalom's
// The header of a file in blocks.
std::vector<uint8_t> block_file_header(FileKind kind);
// Returns whether a file that begins with this header is in blocks. Fails if it is not of this kind. A file
// that is not in blocks is read with unpack_container, which checks everything else.
Result<bool> is_block_file(std::span<const uint8_t> header, FileKind expected);

// Corrects the checksum of a file, for tests that damage its contents.
void repair_checksum(std::span<uint8_t> file);

}  // namespace slalom
