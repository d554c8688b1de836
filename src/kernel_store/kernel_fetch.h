// Fetches Debian's unmodified kernels with apt into the kernel cache, and the headers to build modules
// for them.
//
// apt uses a private root: its sources, lists, state and downloads are in a temporary directory in the cache.
// The host's apt configuration is only read (mirrors, proxies), and no privilege is needed. Debian has signed
// all packages, unless Trust::Anyone allows others.
#pragma once

#include <string>

#include "base/result.h"
#include "kernel_store/fetch_options.h"
#include "kernel_store/kernel_cache.h"

namespace slalom::vm {

// Returns at once if the kernel is in the cache. Concurrent fetches wait for each other.
Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& name, const FetchOptions& options);

// Fetches the headers of exactly this build and unpacks them next to the kernels. Returns the directory for
// `make -C`. Returns at once if they are present.
Result<std::filesystem::path> fetch_headers(const KernelCache& cache, const Kernel& kernel,
                                            const FetchOptions& options);

}  // namespace slalom::vm
