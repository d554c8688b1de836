// SerialResults: the results of flows of system calls in serial orders, and whether those of another
// execution equal the results of one of these orders.
//
// Names are compared by what they name (vm/guests/linux/call_facts.h). Data that calls wrote is compared,
// too, unless some call writes a time, which differs in every execution. An execution in which a signal has
// interrupted a call is not judged: serial orders have no interrupted calls, and a signal may interrupt any
// call.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "inputs/call_program.h"

namespace slalom::vm {

class SerialResults {
 public:
  using Bytes = std::vector<std::vector<uint8_t>>;  // by flow, as the flows reported them

  SerialResults(std::vector<CallProgram> flows, std::vector<std::string> names);

  // Adds the results of one serial order.
  void add(const Bytes& results);
  // Empty if some order gave these results; otherwise what is wrong with them.
  std::string judge(const Bytes& results) const;

  const std::vector<CallProgram>& flows() const { return flows_; }
  // A call as reports name it: "read(fd, &a(3), 1) of reader".
  std::string call_text(size_t flow, size_t call) const;
  // The first call that writes a time, so that data is not compared; empty if there is none.
  std::string time_teller() const;

 private:
  using Values = std::vector<std::vector<int64_t>>;  // by flow and call
  struct Decoded {
    Values values;  // as returned by the calls
    Values named;   // with names replaced by values that all executions share
    uint64_t data = 0;
  };
  Decoded decode(const Bytes& results) const;
  void name(Decoded& decoded) const;
  bool was_interrupted(const Values& values) const;

  std::vector<CallProgram> flows_;
  std::vector<std::string> names_;
  std::vector<std::vector<DataObject>> masks_;  // by flow: the names in its data
  bool compares_data_ = true;
  bool has_signals_ = false;
  std::set<std::pair<Values, uint64_t>> all_;
  std::set<Values> values_;
};

}  // namespace slalom::vm
