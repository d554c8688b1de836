// Fetches Debian's unmodified cloud kernels with apt into the kernel cache, and the headers to build modules
// for them.
//
// apt uses a private root: its sources, lists, state and downloads are in a temporary directory in the cache.
// The host's apt configuration is only read (mirrors, proxies), and no privilege is needed. Debian has signed
// all packages, unless Trust::Anyone allows others.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "kernel_store/kernel_cache.h"

namespace slalom::vm {

struct FetchOptions {
  std::string mirror;  // used instead of the configured mirrors; empty: use these
  enum class Trust {
    Signed,
    Anyone
  } trust = Trust::Signed;  // Anyone: packages of `mirror` need no signature
  std::filesystem::path apt_configuration = "/etc/apt";
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// Returns at once if the kernel is in the cache. Concurrent fetches wait for each other.
Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& name, const FetchOptions& options);

// Fetches the headers of exactly this build and unpacks them next to the kernels. Returns the directory for
// `make -C`. Returns at once if they are present.
Result<std::filesystem::path> fetch_headers(const KernelCache& cache, const Kernel& kernel,
                                            const FetchOptions& options);

}  // namespace slalom::vm
