// prepare(): from a kernel test to a machine that stands where all of its flows are about to start.
//
// Boots the kernel with slalom's agent, lets the agent set the system up, and collects the flows: each CPU
// that has a flow stands just behind its SLALOM_READY, which was answered with 0, so that its next
// instruction begins the test. Nobody is parked. What is done from there, and who answers the hypercalls, is
// the caller's business; programs are given with SLALOM_PROGRAM.
//
// The machine is kept in the cache under all that it was made from. Lists of calls are not part of that:
// tests that differ in these only share one machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/boot.h"
#include "vm/control/guest_plan.h"
#include "vm/scenario/kernel_test.h"

namespace slalom::vm {

struct KernelThread {
  enum class Where : uint8_t {
    Pinned,  // to `cpu`, by slalom
    Bound,   // to `cpu`, by the kernel
    Free,    // the kernel lets nobody pin it: where it runs is not controlled
  };
  std::string name;
  int cpu = -1;
  Where where = Where::Free;
  bool operator==(const KernelThread&) const = default;
};

struct PreparedTest {
  Booted machine;
  std::vector<std::vector<uint8_t>> images;    // for each flow; empty: it is a program
  std::string console;                         // what was printed until here
  std::vector<KernelThread> threads;           // as they were when the flows were started
  std::vector<std::filesystem::path> modules;  // the files of those that were files
  std::vector<PlanPart> parts;                 // of the plan that the agent has
  std::string content;                         // names all that the machine was made from
  bool from_cache = false;
};

struct PrepareOptions {
  bool use_cache = true;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };  // true: it fails, saying what was going on
};

Result<PreparedTest> prepare(const KernelTest& test, const PrepareOptions& options = {});

}  // namespace slalom::vm
