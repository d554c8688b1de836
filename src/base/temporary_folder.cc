#include "base/temporary_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace slalom {

Result<TemporaryFolder> TemporaryFolder::make(std::string_view purpose) {
  std::error_code trouble;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(trouble);
  if (trouble)
    return error("there is no folder for temporary files ({}): set TMPDIR to one", trouble.message());
  std::string name = (parent / fmt::format("slalom-{}-XXXXXX", purpose)).string();
  if (mkdtemp(name.data()) == nullptr)
    return error("cannot make a temporary folder in {}: {}; set TMPDIR to a folder that can be written to",
                 parent.string(), std::strerror(errno));
  return TemporaryFolder(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace slalom
