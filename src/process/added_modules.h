// AddedModules: the modules that an execution of a program has loaded after main() began, and their
// addresses.
//
// The addresses depend on the schedule. So everything about such a module is reported at the stable()
// addresses that ProgramNames gives it. The target gets the same facts in its own addresses: which code in
// the module is the user's, which belongs to the C++ library's headers, and which to the scope. Not for
// modules that are loaded when main() begins, which have the same addresses in every process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "preload/protocol.h"
#include "process/names/program_names.h"
#include "process/program_scope.h"

namespace slalom {

class AddedModules {
 public:
  // Takes the modules of a target that waits at main(), and writes them to the channel.
  Result<void> describe(preload::Channel& channel, std::vector<preload::Range> wrappers,
                        std::vector<preload::ScopedCode> scoped);
  void begin_execution(preload::Channel& channel);  // forgets the modules of the last execution
  bool any() const { return !moved_.empty(); }
  // Adds the module that the channel reports. `path` is the path of its file.
  Result<void> add(preload::Channel& channel, const std::string& path, ProgramNames& names,
                   ProgramScope& scope, const ProgramScope::Memory& memory);

  uint64_t stable(uint64_t address) const {
    for (const Moved& module : moved_)
      if ((address & ~preload::kGateBit) - module.begin < module.size) return address + module.distance;
    return address;
  }
  // Returns the address in this execution; empty if the module is not loaded in it.
  std::optional<uint64_t> here(uint64_t stable) const {
    if (!ProgramNames::is_of_added(stable)) return stable;
    for (const Moved& module : moved_)
      if (stable - module.distance - module.begin < module.size) return stable - module.distance;
    return std::nullopt;
  }

 private:
  struct Moved {
    uint64_t begin, size, distance;
  };
  // The code of a module, at stable addresses.
  struct Known {
    std::vector<preload::Range> wrappers;
    std::vector<preload::ScopedCode> scoped;
  };

  void forget(preload::Channel& channel);

  std::vector<preload::Range> wrappers_;     // of the modules loaded at main()
  std::vector<preload::ScopedCode> scoped_;  // likewise
  uint32_t user_count_ = 0;                  // likewise
  std::map<uint64_t, Known> known_;          // by stable begin address
  // Real begin address to stable begin address of the module that was last loaded there, over all executions.
  std::map<uint64_t, uint64_t> last_;
  std::map<std::string, uint32_t> instances_;  // number of loads of each path in this execution
  std::vector<Moved> moved_;
  std::vector<preload::Range> all_wrappers_;  // current contents of the channel
  std::vector<preload::ScopedCode> all_scoped_;
};

}  // namespace slalom
