// Targets that are kernel tests: TOML files that name a kernel, flows of system calls, and the values to
// observe.
#pragma once

#include <memory>
#include <vector>

#include "campaign/campaign.h"
#include "symbols/dwarf/dwarf.h"
#include "targets/open.h"
#include "vm/control/course.h"
#include "vm/control/kernel_machine.h"
#include "vm/scenario/kernel_names.h"

namespace slalom {

// A kernel test that is open: its target, and what debuggers and traces need besides.
struct OpenKernelTest {
  Target target;
  std::shared_ptr<const vm::KernelNames> names;
  std::shared_ptr<const vm::GuestKernel> kernel;  // nullptr if the kernel is unknown
  // Files with debug information in use: a vmlinux, which has no sections here, and modules.
  std::vector<DebugFile> debug_files;
  std::filesystem::path folder;  // folder of the test's file
  // Makes a machine that is separate from those of `target`.
  std::function<Result<std::unique_ptr<vm::KernelMachine>>()> make_kernel_machine;
};
Result<OpenKernelTest> open_kernel_test_for_replay(const TargetId& id, const OpenOptions& options);
Result<Target> open_kernel_test(const std::string& path, const std::string& text,
                                const std::vector<std::string>& scope, const OpenOptions& options);
Result<Target> open_kernel_test(const TargetId& id, const OpenOptions& options);

// The C sources from which the host's compiler builds the flows of a capsule's kernel test, as absolute
// paths.
Result<std::vector<std::string>> sources_to_compile(const TargetId& id);

// A replay of a finding, with all data needed to go through it again, step by step.
struct KernelReplay {
  OpenKernelTest test;
  std::unique_ptr<vm::KernelMachine> machine;
  vm::Course course;
  Replay replay;
};
Result<std::unique_ptr<KernelReplay>> replay_kernel(const Finding& finding, const ChoicePolicy& policy,
                                                    const OpenOptions& options);

}  // namespace slalom
