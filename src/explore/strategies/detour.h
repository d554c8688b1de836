// detour: goes round a failure that ends most executions, to see what comes after it.
//
// It remembers executions that a failure ended, those that came furthest, and some that no failure ended. A
// task repeats one of them up to a point before its end (1, 2, 4, 8 ... choice points, at random) and goes on
// at random from there, with many switches or with few. An execution that thus passes the failure and meets
// it again further on is remembered instead: a search by multilevel splitting (Kahn and Harris, 1951), with
// the number of choice points as the level. What comes after the failure is searched from executions that
// have passed it.
//
// Guarantee: none. What follows a failure that no schedule avoids cannot be reached.
//
// Not a search of its own: a portfolio shows it all executions, and gives it a third of them while at least
// half of the executions of its other members end in a failure. What it has seen comes into effect between
// epochs, so that its tasks do not depend on the number of workers.
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

  // An execution of the portfolio, in order; `own`: of a task of this strategy.
  void watch(const Execution& execution, bool own);
  // What was watched since the last call comes into effect. Is there anything to go round?
  bool start_epoch();

  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  static constexpr size_t kKept = 8;
  static constexpr size_t kLongest = 20'000;  // choice points of an execution that is worth keeping
  static constexpr uint32_t kTries = 64;      // of one execution, before others get its place

  struct Known {
    std::vector<Pick> picks;
    uint64_t class_hash = 0;
    uint64_t rank = 0;  // those with the lowest are kept
    uint32_t tries = 0;
  };
  using Pool = std::vector<Known>;  // by rank
  static bool has_room(const Pool& pool, uint64_t rank);
  static void keep(Pool& pool, Known known);
  static void save(ByteWriter& out, const Pool& pool);
  static void load(ByteReader& in, Pool& pool);

  uint64_t seed_;
  Pool known_[2];                      // in effect: executions that ended in a failure, and others
  Pool seen_[2];                       // of this epoch
  uint64_t watched_ = 0, failed_ = 0;  // executions of others in this epoch
  uint64_t tasks_ = 0;
  uint64_t passed_ = 0;  // own executions that no failure ended
  uint64_t ended_ = 0;
};

}  // namespace slalom
