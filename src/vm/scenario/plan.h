// TestPlan: a kernel test in terms of the machine: the files to put into it, and the plan that the agent
// follows there (guest/test.c).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/temporary_folder.h"
#include "vm/boot/boot.h"
#include "vm/control/guest_plan.h"
#include "vm/scenario/kernel_test.h"

namespace slalom::vm {

struct TestPlan {
  BootOptions boot;
  std::string text;  // the plan in the agent's form
  // The parts of the plan in terms of the user's file, for messages.
  std::vector<PlanPart> parts;
  std::vector<std::filesystem::path> modules;  // the files of modules that are files
  std::optional<TemporaryFolder> scratch;      // holds compiled programs until the machine has booted
};

Result<TestPlan> plan_of(const KernelTest& test);

// The text of guest/slalom.h at the time of slalom's build.
std::string_view hypercall_header();

}  // namespace slalom::vm
