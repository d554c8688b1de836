// Keeps the most recently used files of slalom's caches.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace slalom::vm {

// Updates the file's time, which records its last use.
void mark_used(const std::filesystem::path& file);

// Returns the directory's files with this extension, oldest first, without the `most` that were used last.
std::vector<std::filesystem::path> files_to_forget(const std::filesystem::path& directory,
                                                   std::string_view extension, size_t most);

}  // namespace slalom::vm
