// A search on disk: its job and everything it has done, written between rounds and replaced atomically, so
// that a search that was killed at any moment goes on from its last save and ends with the same counts.
#pragma once

#include <filesystem>
#include <vector>

#include "base/lock_file.h"
#include "campaign/job.h"
#include "explore/explorer.h"
#include "trace/sight.h"

namespace slalom {

// Fails if another search is using the file.
Result<LockFile> lock_search(const std::filesystem::path& path);
// `uncontrolled`: what the target did so far that is not controlled.
Result<void> save_search(const std::filesystem::path& path, const Job& job, const Explorer& explorer,
                         const std::vector<UncontrolledAct>& uncontrolled);
// False: there is no such file, so the search starts new. An error if it is damaged or of another job.
Result<bool> load_search(const std::filesystem::path& path, const Job& job, Explorer& explorer,
                         std::vector<UncontrolledAct>& uncontrolled);

}  // namespace slalom
