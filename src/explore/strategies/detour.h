// detour: goes round a failure that ends most executions, to see what comes after it.
//
// The strategy remembers two kinds of executions: those that a failure ended, as late as possible, and some
// that no failure ended. A task repeats a remembered execution up to a point before its end (1, 2, 4, 8 ...
// choice points, at random). From there it goes on at random, with many switches or with few. If the new
// execution passes the failure and meets it again further on, the strategy remembers the new one instead.
// This is a search by multilevel splitting (Kahn and Harris, 1951) with the number of choice points as the
// level. The behaviour after the failure is searched from executions that have passed it.
//
// Guarantee: none. If no schedule avoids a failure, detour cannot reach what follows it.
//
// detour is not a search of its own. A portfolio shows it all executions, and gives it a third of them while
// at least half of the executions of the other members end in a failure. What it sees comes into effect
// between epochs, so that its tasks do not depend on the number of workers.
//
// Cost: the choices of four times kKept executions.
#pragma once

#include <vector>

#include "base/rng.h"
#include "explore/strategy.h"

namespace slalom {

class Detour : public Strategy {
 public:
  explicit Detour(uint64_t seed = 1) : seed_(seed) {}
  std::string name() const override { return "detour"; }
  Recording recording() const override { return Recording::Choices; }
  bool restarts() const override { return true; }
  void restart() override;

  // Takes in an execution of the portfolio; call it in order. `own`: the execution belongs to a task of this
  // strategy.
  void watch(const Execution& execution, bool own);
  // Puts everything watched since the last call into effect. Returns whether there is a failure to go round.
  bool start_epoch();

  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  static constexpr size_t kKept = 8;
  static constexpr size_t kLongest = 20'000;  // executions with more choice points are not kept
  static constexpr uint32_t kTries = 64;      // tasks per remembered execution, before others replace it

  struct Known {
    std::vector<Pick> picks;
    uint64_t class_hash = 0;
    uint64_t rank = 0;  // executions with the lowest ranks are kept
    uint32_t tries = 0;
  };
  using Pool = std::vector<Known>;  // ordered by rank
  static bool has_room(const Pool& pool, uint64_t rank);
  static void keep(Pool& pool, Known known);
  static void save(ByteWriter& out, const Pool& pool);
  static void load(ByteReader& in, Pool& pool);

  uint64_t seed_;
  Pool known_[2];                      // in effect; [0]: a failure ended them, [1]: the others
  Pool seen_[2];                       // of the current epoch
  uint64_t watched_ = 0, failed_ = 0;  // executions of other members in this epoch
  uint64_t tasks_ = 0;
  uint64_t passed_ = 0;  // own executions that no failure ended
  uint64_t ended_ = 0;
};

}  // namespace slalom
