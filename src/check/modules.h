// Modules: the files that this process consists of, and addresses in them that mean the same in every process
// of the same test, wherever they were loaded.
//
// A module with the user's code is told as if it had been loaded at a place of its own; stacks and the heap
// of executions lie at fixed places anyhow. All else keeps its address.
#pragma once

#include <memory>
#include <vector>

#include "preload/protocol.h"
#include "process/program_names.h"

namespace slalom::checking {

class Modules {
 public:
  Modules();  // as they are loaded now

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

  // For the model: which code is the user's, and what in it is of the language's library.
  void describe(preload::Channel& channel) const;
  // What the C++ library keeps in the user's modules, as it is before an execution: nobody else can set it.
  void forget_library_state() const;
  const std::shared_ptr<ProgramNames>& names() const { return names_; }  // of stable addresses
  const std::string& program() const { return program_; }                // the file

 private:
  struct Moved {
    uint64_t begin, size, distance;
  };
  std::vector<Moved> moved_;
  std::vector<preload::Range> library_state_;  // where it lies here
  std::string program_;
  std::shared_ptr<ProgramNames> names_ = std::make_shared<ProgramNames>();
};

}  // namespace slalom::checking
