// TestProtocol: answers the hypercalls of a test's flows and check (guest/slalom.h), and keeps what they
// said: the flows' results, failures, the status of the check, values to be chosen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vm/control/kernel_contexts.h"
#include "vm/control/kernel_events.h"

namespace slalom::vm {

class TestProtocol final : public Hypercalls {
 public:
  static constexpr uint64_t kMostNoteBytes = uint64_t{16} << 20;  // of SLALOM_NOTE, in one execution

  TestProtocol(Pc& pc, Tap& tap, KernelContexts& contexts, KernelEvents& events,
               const KernelMachineOptions& options)
      : pc_(pc), tap_(tap), contexts_(contexts), events_(events), options_(options) {}

  struct State {
    std::vector<std::vector<uint8_t>> results;  // by flow
    uint32_t arity = 0;                         // of the value to be chosen for SLALOM_CHOOSE; 0: none
    std::optional<std::string> failure;         // from SLALOM_FAIL
    uint64_t failed_part = 0;  // the part of the plan that failed; 0: a program reported the failure itself
    std::optional<int64_t> checked;  // the status of the check
    uint64_t note_bytes = 0;         // total size of the SLALOM_NOTE texts of this execution
  };
  void begin(std::shared_ptr<const TestInput> test);  // a new execution; nullptr: the flows get no programs
  const TestInput* test() const { return test_.get(); }
  const State& save() const { return state_; }
  void restore(const State& state) { state_ = state; }

  const std::vector<std::vector<uint8_t>>& results() const { return state_.results; }
  uint32_t arity() const { return state_.arity; }
  const std::optional<std::string>& failure() const { return state_.failure; }
  uint64_t failed_part() const { return state_.failed_part; }
  const std::optional<int64_t>& checked() const { return state_.checked; }
  bool notes_too_much() const { return state_.note_bytes > kMostNoteBytes; }
  void choose(uint32_t value);  // answers SLALOM_CHOOSE, on the CPU that runs

  bool on_hypercall(Cpu& cpu) override;

 private:
  bool leave_note(Cpu& cpu, const std::string& text);

  Pc& pc_;
  Tap& tap_;
  KernelContexts& contexts_;
  KernelEvents& events_;
  const KernelMachineOptions& options_;
  std::shared_ptr<const TestInput> test_;
  State state_;
};

}  // namespace slalom::vm
