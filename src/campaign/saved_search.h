// A search on disk: its job and everything it has done. It is written between rounds and replaced atomically.
// A search that was killed at any moment continues from its last save, and ends with the same counts.
#pragma once

#include <filesystem>
#include <vector>

#include "base/lock_file.h"
#include "campaign/job.h"
#include "explore/explorer.h"
#include "trace/sight.h"

namespace slalom {

// Fails if another search uses the file.
Result<LockFile> lock_search(const std::filesystem::path& path);
// `uncontrolled`: the uncontrolled acts of the target so far.
Result<void> save_search(const std::filesystem::path& path, const Job& job, const Explorer& explorer,
                         const std::vector<UncontrolledAct>& uncontrolled);
// Returns false if there is no such file: the search starts new. Fails if the file is damaged or belongs to
// another job.
Result<bool> load_search(const std::filesystem::path& path, const Job& job, Explorer& explorer,
                         std::vector<UncontrolledAct>& uncontrolled);

}  // namespace slalom
