// StackNames: what the program calls memory on the stacks of its threads, as its debug information has it.
//
// Watches one execution whose report is to be made, and looks where its threads stand whenever they touch a
// stack. What another thread than the owner has touched is looked up before the owner goes on, so that it is
// in the frame that it was in; what a thread touches of its own stack is looked up while the operation is yet
// to be made. An address that has several names during the execution has none. Where threads cannot be looked
// at (see symbols/dwarf/stacks.h), nothing has a name. Not for executions of a search: each look stops a
// thread and takes a millisecond.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "preload/protocol.h"
#include "process/names/program_names.h"
#include "symbols/dwarf/stacks.h"

namespace slalom {

class StackNames {
 public:
  // What it finds is learned by `names`, which must outlive it.
  explicit StackNames(ProgramNames& names) : names_(names) { names.forget_locals(); }

  // The agent, by its index, has touched that address.
  void touched(uint64_t address, uint32_t agent);
  void forget() { touched_.clear(); }  // since others have run, too
  // The execution is that process, where all agents wait for their turn; `agent` is about to touch an
  // address.
  void look(pid_t process, preload::Range channel, uint32_t agent, uint64_t address,
            const std::vector<AgentId>& agents);

 private:
  struct Thread {
    pid_t id = 0;
    uint32_t agent = 0;
    uint64_t stack = 0, pc = 0;  // where it waits
  };
  struct Known {
    uint64_t stack = 0, pc = 0;
    std::vector<StackFrame> frames;
    std::vector<uint64_t> returns;   // what was in memory below the end of each
    std::vector<StackFrame> before;  // frames at the look before
  };

  std::vector<Thread> threads(preload::Range channel) const;
  std::optional<std::vector<Thread>> try_threads(preload::Range channel) const;  // none: one still runs
  const Known& frames(const Thread& thread);
  void find_object(const Thread& thread, uint64_t address);
  std::optional<uint64_t> word_at(uint64_t address) const;
  bool is_outermost(const std::vector<StackFrame>& frames, const StackFrame& frame) const;
  std::vector<uint64_t> return_addresses(const std::vector<StackFrame>& frames) const;

  ProgramNames& names_;
  std::map<uint64_t, uint32_t> touched_;  // since the last look: by whom; kNobody: by several
  pid_t process_ = 0;
  std::unique_ptr<Stacks> stacks_;
  std::map<pid_t, Known> known_;
  uint32_t looks_ = 0;
};

}  // namespace slalom
