// Liveness: guesses whether a CPU makes progress or waits for another one. It looks only at what the CPU
// does, and knows nothing of the kernel (SKI, section 3.3).
//
//   heuristic                                         the CPU waits until
//   H1  it halts                                      an interrupt wakes it
//   H2  two PAUSEs within kPauseWindow instructions   another CPU writes what it read between them
//   H3  a loop reads the same values again and again  another CPU writes what the loop read
//       and changes nothing
//   H4  kStarvation instructions without a pause      the others have run kPatience instructions
//
// An instruction that stores the value that it has just read (XCHG with a lock that is taken) changes
// nothing. It does not end a loop of H3, and it does not end another CPU's wait. A failed CMPXCHG stores
// nothing.
//
// examine() decides H3 and H4, at fixed counts of the CPU's own instructions. So the guesses depend on what
// the CPUs did, but not on where a policy stopped them, and a replay makes the same guesses.
//
// This is a value: checkpoints copy it. It names the addresses to watch; the owner of the machine watches
// them.
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
  // H3: the most accesses in a loop, and how often it must repeat.
  static constexpr unsigned kLoop = 20, kRounds = 16;

  enum class Why : uint8_t { Live, Halt, Pause, Loop, Starvation };
  static constexpr unsigned kReasons = 5;

  Why why() const { return why_; }
  bool live() const { return why_ == Why::Live; }
  // The CPU is live again when one of these addresses is written (H2, H3).
  const std::vector<uint64_t>& waits_for() const { return reads_; }

  void on_accesses(std::span<const Access> accesses);
  void on_pause(uint64_t retired);
  void on_halt() { stop(Why::Halt); }
  // `instructions`: that other CPUs have run meanwhile.
  void on_others_ran(uint64_t instructions) { others_ran_ += instructions; }
  void examine(uint64_t in_a_row);  // `in_a_row`: instructions since another CPU ran
  bool end_starvation();            // called when another CPU is examined; true if this one is live again
  void on_write(uint64_t address, unsigned size);  // by any CPU; ends H2 and H3 if the CPU waits for it
  void revive();  // after an interrupt, a write to what it waits for, or a decision
  // True if the last store that on_accesses() saw came from this instruction and changed nothing at this
  // address.
  bool changed_nothing(uint64_t pc, uint64_t address) const;

  // How often each heuristic has fired since construction.
  const std::array<uint64_t, kReasons>& counts() const { return counts_; }

 private:
  void stop(Why why);
  void find_loop();

  Why why_ = Why::Live;
  uint64_t last_pause_ = 0;
  uint64_t others_ran_ = 0;
  std::vector<Access> recent_;  // reads since the last write that changed something, latest last
  Access last_{};
  Access idle_store_{};                // the last store, if it changed nothing
  std::vector<uint64_t> since_pause_;  // addresses read since the last PAUSE
  std::vector<uint64_t> reads_;
  std::array<uint64_t, kReasons> counts_{};
};

}  // namespace slalom::vm
