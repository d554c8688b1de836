// The dry run of a kernel test, in the words of its file: what each call returns when the flows run one after
// the other, and whether a search would have anything to do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "campaign/target.h"

namespace slalom {

struct KernelDryRun {
  struct Call {
    int line = 0;  // in the test's file; 0 if it is not written there
    std::string text;
    std::string result;   // "3", "-ENOENT"; empty if it did not return
    bool waited = false;  // another flow ran before it returned
  };
  struct Flow {
    std::string name;
    uint64_t instructions = 0, choice_points = 0;
    std::vector<Call> calls;
  };
  std::vector<Flow> prepared;  // calls made before the flows start: for all flows, or for one
  std::vector<Flow> flows;
  std::string ended;                  // why the execution ended; empty if all flows reached their ends
  std::vector<std::string> warnings;  // a prepared call fails, or a search would be useless
};

// `target` must be a kernel test. `stop` is polled.
Result<KernelDryRun> dry_run_kernel(const Target& target, const std::function<bool()>& stop);

}  // namespace slalom
