// Where a kernel may be found: suites of mirrors, best first.
#pragma once

#include <string>
#include <vector>

#include "kernel_store/apt_root.h"
#include "kernel_store/fetch_options.h"
#include "kernel_store/kernel_name.h"

namespace slalom::vm {

struct KernelPlace {
  AptSource source;
  std::string newest;  // the package that depends on the newest kernel; empty if this suite has only builds
};

// For a name without a build, the places of the newest kernel; with one, all places of builds. Each suite
// comes with all of its mirrors, the archive of old releases last.
std::vector<KernelPlace> places_of(const KernelName& name, const FetchOptions& options);

// All places of builds, by suite.
std::vector<std::vector<KernelPlace>> suites_of(const KernelName& name, const FetchOptions& options);

// Returns what the versions of its packages begin with: "6.1.".
std::string version_prefix(const KernelName& name);

}  // namespace slalom::vm
