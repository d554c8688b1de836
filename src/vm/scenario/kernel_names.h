// KernelNames: names of CPUs, interrupts and addresses of a kernel under test, for reports.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inputs/call_program.h"
#include "symbols/guest_memory.h"
#include "symbols/symbol_table.h"
#include "trace/names.h"
#include "vm/guests/linux/guest_lines.h"

namespace slalom::vm {

class KernelNames final : public Names {
 public:
  // Flow i runs on CPU i; CPUs without a flow have none.
  KernelNames(SymbolTable symbols, std::vector<std::string> flows, unsigned cpus);

  std::string agent(AgentId id) const override;
  std::string role(AgentId id) const override { return agent(id); }
  std::string object(ObjectId id) const override;
  std::string place(Place pc) const override { return symbols_.describe(pc.raw); }
  std::string source(Place) const override { return {}; }
  std::string line(Place pc) const override { return lines_ ? lines_->at(pc.raw) : std::string(); }
  Marking marking(Place pc, bool writes) const override {
    return lines_ ? lines_->marking(pc.raw, writes) : Marking::Unknown;
  }
  std::string system_call(AgentId agent, uint64_t ordinal, int64_t number) const override;
  std::string system_result(int64_t value) const override;

  // After this call, per-CPU variables have names such as "__preempt_count[cpu1]". Before, they are shown as
  // addresses.
  void read_per_cpu(GuestMemory& memory, unsigned cpus);
  // Sets the calls of the flow on this CPU, in the words of the test file.
  void set_calls(unsigned cpu, CallProgram calls);
  void set_lines(GuestLines lines) { lines_.emplace(std::move(lines)); }
  const SymbolTable& symbols() const { return symbols_; }

 private:
  SymbolTable symbols_;
  std::optional<GuestLines> lines_;
  std::map<AgentId, std::string> agents_;
  std::map<AgentId, CallProgram> calls_;
  // The range of the original variables, before the kernel copies them for each CPU.
  uint64_t per_cpu_start_ = 0, per_cpu_end_ = 0;
  std::vector<uint64_t> per_cpu_offsets_;  // by CPU
};

}  // namespace slalom::vm
