// A kernel of the user's own: its release and its modules.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "kernel_store/kernel_cache.h"

namespace slalom::vm {

// Returns the release of a Linux bzImage or vmlinux, compressed or not, as uname -r prints it; empty if the
// file does not say.
std::string kernel_release(std::span<const uint8_t> file);

// Fills in the release and the modules of a kernel that is the user's own file; leaves Debian's kernels
// alone. `directory` holds the modules; empty: looks beside the kernel, in its build tree, and in
// /lib/modules/RELEASE.
Result<Kernel> with_own_modules(Kernel kernel, const std::filesystem::path& directory);

}  // namespace slalom::vm
