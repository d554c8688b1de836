// TestPlan: a kernel test in terms of the machine: the files to put into it, and the plan that the agent
// follows there (guest/test.c).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"
#include "vm/control/guest_plan.h"
#include "vm/scenario/kernel_test.h"

namespace slalom::vm {

// A temporary directory. The destructor removes it with its contents.
class Scratch {
 public:
  Scratch() = default;  // no directory
  static Result<Scratch> make();
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~Scratch();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit Scratch(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

struct TestPlan {
  BootOptions boot;
  std::string text;  // the plan in the agent's form
  // The parts of the plan in terms of the user's file, for messages.
  std::vector<PlanPart> parts;
  std::vector<std::filesystem::path> modules;  // the files of modules that are files
  Scratch scratch;                             // holds compiled programs until the machine has booted
};

Result<TestPlan> plan_of(const KernelTest& test);

// The text of guest/slalom.h at the time of slalom's build.
std::string_view hypercall_header();

}  // namespace slalom::vm
