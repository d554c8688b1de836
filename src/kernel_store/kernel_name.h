// KernelName: the name of one of Debian's kernels: debian:VERSION[:FLAVOUR][=BUILD].
//
// Examples: debian:6.1, debian:6.1:rt, debian:5.10=5.10.218-1. Without a build it stands for the newest one
// at the time of the fetch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

struct KernelName {
  std::string version;            // of Linux: "6.1", or "sid"
  std::string flavour = "cloud";  // one of kernel_flavours()
  std::string build;              // the version of Debian's packages, such as "5.10.218-1"; empty: the newest

  // The shortest spelling. It is also the name of the kernel's directory in the cache.
  std::string text() const;
  KernelName without_build() const { return {version, flavour, {}}; }
  bool operator==(const KernelName&) const = default;
};

// The flavours that Debian builds; the first is the default.
const std::vector<std::string>& kernel_flavours();
// The names of the default flavour.
const std::vector<std::string>& known_kernels();

// Returns true if the text is meant as a name, not as the path of a file. The name may still be wrong.
bool looks_like_kernel_name(std::string_view text);
Result<KernelName> parse_kernel_name(std::string_view text);

// Whether Debian's version `a` is older than `b`. Versions of kernels have no epoch.
bool is_older_build(std::string_view a, std::string_view b);

}  // namespace slalom::vm
