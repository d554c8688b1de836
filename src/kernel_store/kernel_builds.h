// Lists the builds of a kernel that Debian's mirrors have.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kernel_store/apt_root.h"
#include "kernel_store/fetch_options.h"
#include "kernel_store/kernel_name.h"

namespace slalom::vm {

// Returns the image packages of this version and flavour in the current list of `apt`, newest first.
Result<std::vector<Stanza>> images_in(const AptRoot& apt, const KernelName& name);

struct KernelBuild {
  KernelName name;
  std::string release;  // as uname -r prints it
  std::string suite;
  std::string mirror;
};

// Returns all builds of this version and flavour, newest first, each with the first suite that has it. Suites
// that cannot be read are left out, and reported to `options.progress`; an error if that are all.
Result<std::vector<KernelBuild>> available_builds(const KernelName& name, const FetchOptions& options);

}  // namespace slalom::vm
