// TestPlan: what a kernel test means for the machine: the files that go into it, and what the agent does
// there (guest/test.c).
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

// A directory that goes away with everything in it.
class Scratch {
 public:
  Scratch() = default;  // none
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
  std::string text;  // for the agent
  // What each of its parts is in the user's file, for messages.
  std::vector<PlanPart> parts;
  std::vector<std::filesystem::path> modules;  // those that are files
  Scratch scratch;                             // where compiled programs are, until the machine has booted
};

Result<TestPlan> plan_of(const KernelTest& test);

// guest/slalom.h, as it was when slalom was built.
std::string_view hypercall_header();

}  // namespace slalom::vm
