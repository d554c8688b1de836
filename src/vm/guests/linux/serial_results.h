// SerialResults: what flows of system calls gave in serial orders of them, and whether what they gave in
// another execution is one of these.
//
// Names are compared by what they name (vm/guests/linux/call_facts.h), and data that calls wrote is, too,
// unless some call tells the time: that is another one in every execution. A call that a signal has
// interrupted, as it interrupts none in serial orders, makes an execution that is not judged: every call may
// be interrupted.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "inputs/call_program.h"

namespace slalom::vm {

class SerialResults {
 public:
  using Bytes = std::vector<std::vector<uint8_t>>;  // as flows give them, by flow

  SerialResults(std::vector<CallProgram> flows, std::vector<std::string> names);

  // Of one order.
  void add(const Bytes& results);
  // Empty: some order gave these. Else what is wrong with them.
  std::string judge(const Bytes& results) const;

  const std::vector<CallProgram>& flows() const { return flows_; }
  // A call as reports name it: "read(fd, &a(3), 1) of reader".
  std::string call_text(size_t flow, size_t call) const;
  // The first call that makes data no matter of comparison; empty: none does.
  std::string time_teller() const;

 private:
  using Values = std::vector<std::vector<int64_t>>;  // by flow and call
  struct Decoded {
    Values values;  // as the calls gave them,
    Values named;   // and with other numbers in place of names
    uint64_t data = 0;
  };
  Decoded decode(const Bytes& results) const;
  void name(Decoded& decoded) const;
  bool was_interrupted(const Values& values) const;

  std::vector<CallProgram> flows_;
  std::vector<std::string> names_;
  std::vector<std::vector<DataObject>> masks_;  // by flow: names in its data
  bool compares_data_ = true;
  bool has_signals_ = false;
  std::set<std::pair<Values, uint64_t>> all_;
  std::set<Values> values_;
};

}  // namespace slalom::vm
