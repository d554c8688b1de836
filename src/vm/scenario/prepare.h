// prepare(): turns a kernel test into a machine that stands just before its flows start.
//
// It boots the kernel with slalom's agent, lets the agent set up the system, and collects the flows. Each CPU
// with a flow then stands just behind its SLALOM_READY, which was answered with 0, so that its next
// instruction begins the test. No CPU is parked. The caller runs the machine from there, answers its
// hypercalls, and provides programs for SLALOM_PROGRAM.
//
// Prepared calls (`prepare` in the file) are made on the way there. The machine is kept in the cache under
// everything that it was made from. That does not include the other lists of calls: tests that differ only in
// these share one machine.
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
    Free,    // the kernel does not allow pinning it, so its CPU is not controlled
  };
  std::string name;
  int cpu = -1;
  Where where = Where::Free;
  bool operator==(const KernelThread&) const = default;
};

struct PreparedTest {
  Booted machine;
  std::vector<std::vector<uint8_t>> images;    // by flow; empty if the flow is a program
  std::string console;                         // console output so far
  std::vector<KernelThread> threads;           // when the flows were started
  std::vector<std::filesystem::path> modules;  // the files of modules that are files
  std::vector<PlanPart> parts;                 // of the agent's plan
  std::string content;                         // a name for everything that the machine was made from
  std::string former_content;                  // what older capsules call it
  std::string kernel;                          // the exact build of Debian's kernel; empty for a user's own
  bool from_cache = false;
};

struct PrepareOptions {
  bool use_cache = true;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };  // true: fail with a message about the current step
};

Result<PreparedTest> prepare(const KernelTest& test, const PrepareOptions& options = {});

}  // namespace slalom::vm
