// Fetches Debian's unmodified cloud kernels with apt, into the kernel cache; and the headers to
// build modules for them.
//
// apt works in a root of its own: sources, lists, state and downloads are below a scratch directory in the
// cache. The system's apt configuration is only read (mirrors, proxies), and no privilege is needed. Packages
// are those that Debian has signed.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "kernel_store/kernel_cache.h"

namespace slalom::vm {

struct FetchOptions {
  std::string mirror;  // instead of the configured ones; empty: those
  enum class Trust {
    Signed,
    Anyone
  } trust = Trust::Signed;  // Anyone: packages of `mirror` need no signature
  std::filesystem::path apt_configuration = "/etc/apt";
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// At once if it is in the cache. Two at the same time wait for each other.
Result<Kernel> fetch_kernel(const KernelCache& cache, const std::string& name, const FetchOptions& options);

// The headers of exactly this build, unpacked beside the kernels; answers what `make -C` takes. At once if
// they are there.
Result<std::filesystem::path> fetch_headers(const KernelCache& cache, const Kernel& kernel,
                                            const FetchOptions& options);

}  // namespace slalom::vm
