// A dry run as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "targets/kernel_dry_run.h"

namespace slalom {

std::string dry_run_text(const std::string& target, const KernelDryRun& run, size_t width);
nlohmann::ordered_json dry_run_json(const std::string& target, const KernelDryRun& run);
// Prints the warnings of a dry run on standard error.
void print_warnings(const KernelDryRun& run);

}  // namespace slalom
