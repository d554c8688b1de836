// AddedModules: what an execution of a program has loaded after main() began, and where.
//
// Where that is depends on the schedule, so all that is told of such a module is told as if it lay where
// ProgramNames knows it: stable(). The target is told, in its own addresses, which code in it is the user's,
// of the C++ library's headers, and of the scope. Not for the modules that are there when main() begins:
// these lie where they lie in every process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "preload/protocol.h"
#include "process/program_names.h"
#include "process/program_scope.h"

namespace slalom {

class AddedModules {
 public:
  // Of a target that waits at main(): what is there, which the channel is told as well.
  Result<void> describe(preload::Channel& channel, std::vector<preload::Range> wrappers,
                        std::vector<preload::ScopedCode> scoped);
  void begin_execution(preload::Channel& channel);  // in which nothing was loaded yet
  bool any() const { return !moved_.empty(); }
  // The one that the channel tells of. `path`: of its file.
  Result<void> add(preload::Channel& channel, const std::string& path, ProgramNames& names,
                   ProgramScope& scope, const ProgramScope::Memory& memory);

  uint64_t stable(uint64_t address) const {
    for (const Moved& module : moved_)
      if ((address & ~preload::kGateBit) - module.begin < module.size) return address + module.distance;
    return address;
  }
  // Nothing: in this execution, it is not loaded.
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
  // What is to be known of a module, by its stable addresses.
  struct Known {
    std::vector<preload::Range> wrappers;
    std::vector<preload::ScopedCode> scoped;
  };

  void forget(preload::Channel& channel);

  std::vector<preload::Range> wrappers_;       // of what is there at main()
  std::vector<preload::ScopedCode> scoped_;    // likewise
  uint32_t user_count_ = 0;                    // likewise
  std::map<uint64_t, Known> known_;            // by where ProgramNames knows them
  std::map<uint64_t, uint64_t> last_;          // which one lay there, in executions before
  std::map<std::string, uint32_t> instances_;  // how often each was loaded, in this one
  std::vector<Moved> moved_;
  std::vector<preload::Range> all_wrappers_;  // what the channel has now
  std::vector<preload::ScopedCode> all_scoped_;
};

}  // namespace slalom
