// Modules: the files that this process consists of, and stable addresses in them, which mean the same in
// every process of the same test, wherever the modules were loaded.
//
// The stable addresses of a module with user code are as if it had been loaded at a place of its own. Stacks
// and heap of executions lie at fixed addresses anyway. All other addresses stay as they are.
#pragma once

#include <memory>
#include <vector>

#include "preload/protocol.h"
#include "process/names/program_names.h"

namespace slalom::checking {

class Modules {
 public:
  Modules();  // the modules loaded at the time of the call

  uint64_t stable(uint64_t address) const {
    for (const Moved& module : moved_)
      if (address - module.begin < module.size) return address + module.distance;
    return address;
  }
  uint64_t here(uint64_t stable) const {
    for (const Moved& module : moved_)
      if (stable - module.distance - module.begin < module.size) return stable - module.distance;
    return stable;
  }

  // Tells the model which code is the user's, and which of it belongs to the language's library.
  void describe(preload::Channel& channel) const;
  // Resets the C++ library's state in the user's modules, because no other code can reset it before an
  // execution.
  void forget_library_state() const;
  const std::shared_ptr<ProgramNames>& names() const { return names_; }  // names of stable addresses
  const std::string& program() const { return program_; }                // the file

 private:
  struct Moved {
    uint64_t begin, size, distance;
  };
  std::vector<Moved> moved_;
  std::vector<preload::Range> library_state_;  // at real addresses
  std::string program_;
  std::shared_ptr<ProgramNames> names_ = std::make_shared<ProgramNames>();
};

}  // namespace slalom::checking
