// What the caches below slalom's cache directory keep: the files used last.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

namespace slalom::vm {

// Its time says from now on that it was used last.
void mark_used(const std::filesystem::path& file);

// All files of the directory with that extension but the `most` used last, the oldest first.
std::vector<std::filesystem::path> files_to_forget(const std::filesystem::path& directory,
                                                   std::string_view extension, size_t most);

}  // namespace slalom::vm
