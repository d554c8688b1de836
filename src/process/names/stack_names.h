// StackNames: names memory on the stacks of a program's threads, and objects that pointers there point to, by
// the program's debug information.
//
// Watches one execution that will be reported, and looks at its threads whenever they touch a stack. If a
// thread touches the stack of another thread, the address is looked up before the owner goes on, while its
// frame still exists. If a thread touches its own stack, the address is looked up before the operation. An
// address that has several names during the execution has none. If the threads cannot be examined (see
// symbols/stacks.h), nothing gets a name. Not for executions of a search: each look stops a thread and takes
// a millisecond.
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
  // Stores the names in `names`, which must outlive this object.
  explicit StackNames(ProgramNames& names) : names_(names) { names.forget_locals(); }

  // Notes that the agent with this index has touched the address.
  void touched(uint64_t address, uint32_t agent);
  void forget() { touched_.clear(); }  // call it if other agents may have run since
  // Looks up the addresses that were touched, and the address that `agent` is about to touch (0 for none).
  // `process` is the execution, in which all agents wait for their turn.
  void look(pid_t process, preload::Range channel, uint32_t agent, uint64_t address,
            const std::vector<AgentId>& agents);

 private:
  struct Thread {
    pid_t id = 0;
    uint32_t agent = 0;
    uint64_t stack = 0, pc = 0;  // stack pointer and pc while it waits
  };
  struct Known {
    uint64_t stack = 0, pc = 0;
    std::vector<StackFrame> frames;
    std::vector<uint64_t> returns;   // the return address of each frame
    std::vector<StackFrame> before;  // the frames at the look before
  };

  std::vector<Thread> threads(preload::Range channel) const;
  // Returns nothing while a thread still runs.
  std::optional<std::vector<Thread>> try_threads(preload::Range channel) const;
  const Known& frames(const Thread& thread);
  void find_object(const Thread& thread, uint64_t address);
  std::optional<uint64_t> word_at(uint64_t address) const;
  bool is_outermost(const std::vector<StackFrame>& frames, const StackFrame& frame) const;
  std::vector<uint64_t> return_addresses(const std::vector<StackFrame>& frames) const;

  ProgramNames& names_;
  // The agent that has touched each address since the last look; kNoAgent if several have.
  std::map<uint64_t, uint32_t> touched_;
  pid_t process_ = 0;
  std::unique_ptr<Stacks> stacks_;
  std::map<pid_t, Known> known_;
  uint32_t looks_ = 0;
};

}  // namespace slalom
