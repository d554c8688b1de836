// Whole files, read and written at once, with errors that name the file.
//
// write_file is atomic: a reader sees the old or the new contents, even after a crash. It replaces whatever
// has the name, which suits files in slalom's own folders. write_output is for a path that the user gave. It
// follows symbolic links, replaces regular files as write_file does, and writes to a device, a FIFO or a
// descriptor (/dev/stdout) without replacing it. Not for files that grow by appending.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom {

inline constexpr uint64_t kMaxFileSize = (uint64_t{1} << 30) + 4096;

Result<std::vector<uint8_t>> read_file(const std::filesystem::path& path);
Result<void> write_file(const std::filesystem::path& path, std::span<const uint8_t> bytes);
Result<void> write_file(const std::filesystem::path& path, std::string_view text);
Result<void> write_output(const std::filesystem::path& path, std::span<const uint8_t> bytes);
Result<void> write_output(const std::filesystem::path& path, std::string_view text);

}  // namespace slalom
