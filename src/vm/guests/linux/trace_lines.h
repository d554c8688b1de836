// TraceLines: formats a Linux kernel's events and accesses as lines for people, live or from a saved trace.
//
// It uses only what a trace contains, so both give the same lines. A line starts with the instruction count
// (of all CPUs), the CPU, and the task that ran there, which the CPU's last ThreadSwitch has named.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trace/access.h"
#include "trace/event.h"
#include "trace/names.h"

namespace slalom::vm {

class TraceLines {
 public:
  explicit TraceLines(const Names& names) : names_(names) {}

  // Must be called for every event in order, even if its line is not shown. The line has no newline.
  std::string event(const Event& event);
  std::string access(const Access& access, uint64_t step, AgentId agent) const;
  std::string place(uint64_t pc) const;  // with its source line if known

 private:
  std::string start(uint64_t step, AgentId agent) const;
  std::string function_call(const Event& event);

  const Names& names_;
  std::map<AgentId, std::string> tasks_;
  std::map<std::string, size_t> depths_;  // number of open calls of chosen functions, by task
};

}  // namespace slalom::vm
