// TraceLines: a Linux kernel's events and accesses as lines for people, live or from a saved trace.
//
// Depends on what a trace holds only, so both give the same lines. A line starts with the instruction (of all
// CPUs), the CPU and the task that ran there; the last ThreadSwitch of the CPU names it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "symbols/symbol_table.h"
#include "trace/access.h"
#include "trace/event.h"
#include "vm/guests/linux/guest_lines.h"

namespace slalom::vm {

class TraceLines {
 public:
  explicit TraceLines(const SymbolTable& symbols) : symbols_(symbols) {}
  void set_lines(GuestLines lines) { lines_.emplace(std::move(lines)); }

  // Every event must come by, whether its line is wanted or not. Without a line end.
  std::string event(const Event& event);
  std::string access(const Access& access, uint64_t step, AgentId agent) const;
  std::string place(uint64_t pc) const;  // with its source line, where that is known

 private:
  std::string start(uint64_t step, AgentId agent) const;
  std::string object(ObjectId id) const;
  std::string function_call(const Event& event);

  const SymbolTable& symbols_;
  std::optional<GuestLines> lines_;
  std::map<AgentId, std::string> tasks_;
  std::map<std::string, size_t> depths_;  // of chosen functions, by task
};

}  // namespace slalom::vm
