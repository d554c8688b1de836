#include "kernel_store/cache_files.h"

#include <algorithm>
#include <utility>

namespace slalom::vm {

void mark_used(const std::filesystem::path& file) {
  std::error_code ignored;
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), ignored);
}

std::vector<std::filesystem::path> files_to_forget(const std::filesystem::path& directory,
                                                   std::string_view extension, size_t most) {
  std::error_code ignored;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (entry.path().extension() == extension)
      files.emplace_back(entry.last_write_time(ignored), entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::filesystem::path> oldest;
  for (size_t i = 0; i + most < files.size(); ++i) oldest.push_back(std::move(files[i].second));
  return oldest;
}

}  // namespace slalom::vm
