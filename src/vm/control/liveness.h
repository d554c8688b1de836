// Liveness: is a CPU getting on, or does it wait for another one? Guessed from what it does, without
// knowledge of the kernel (SKI, section 3.3).
//
//   H1  it halts                                             until an interrupt wakes it
//   H2  two PAUSEs within kPauseWindow instructions          until somebody writes what it read between them
//   H3  a loop that reads the same values again and again    until somebody writes what it read in the loop
//       and changes nothing
//   H4  kStarvation instructions without a pause             until the others have run kPatience instructions
//
// An instruction that stores the value it has just read, as an XCHG with a lock that is taken, changes
// nothing: it neither ends a loop of H3 nor a wait for what it writes. A CMPXCHG that fails stores nothing.
//
// H3 and H4 are decided in look(), which comes at fixed counts of a CPU's own instructions: so what is
// guessed depends on what the CPUs did, but not on where somebody stopped them, and a replay guesses the
// same.
//
// A value: checkpoints copy it. It says what to watch; whoever runs the machine watches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/access.h"

namespace slalom::vm {

class Liveness {
 public:
  static constexpr uint64_t kPauseWindow = 30, kStarvation = 500'000, kPatience = 20'000;
  static constexpr unsigned kLoop = 20, kRounds = 16;  // H3: accesses in a loop, and rounds of it

  enum class Why : uint8_t { Live, Halt, Pause, Loop, Starvation };
  static constexpr unsigned kReasons = 5;

  Why why() const { return why_; }
  bool live() const { return why_ == Why::Live; }
  // Addresses whose change makes it live again (H2, H3).
  const std::vector<uint64_t>& waits_for() const { return reads_; }

  void on_accesses(std::span<const Access> accesses);
  void on_pause(uint64_t retired);
  void on_halt() { stop(Why::Halt); }
  void on_others(uint64_t instructions) { others_ += instructions; }  // that others have run meanwhile
  void look(uint64_t in_a_row);  // it has run that many instructions in a row
  bool look_at_others();         // when one of these looks; true: it is live again
  void revive();                 // an interrupt, a write to what it waits for, a decision
  // The last store that on_accesses() saw was of that instruction, and changed nothing there.
  bool changed_nothing(uint64_t pc, uint64_t address) const;

  // How often each heuristic was used, since clear().
  const std::array<uint64_t, kReasons>& counts() const { return counts_; }

 private:
  void stop(Why why);
  void look_for_loop();

  Why why_ = Why::Live;
  uint64_t last_pause_ = 0;
  uint64_t others_ = 0;
  std::vector<Access> recent_;  // reads since the last write that changed something, the latest last
  Access last_{};
  Access idle_store_{};                // the last store, if it changed nothing
  std::vector<uint64_t> since_pause_;  // addresses read
  std::vector<uint64_t> reads_;
  std::array<uint64_t, kReasons> counts_{};
};

}  // namespace slalom::vm
