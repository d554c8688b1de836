// Random executions that a machine could make: agents with mutexes, a reader-writer lock, a semaphore, a
// condition variable, a barrier, atomics, spawn and join, an interrupt and a timer. Every step has a place
// "p<step>" of its own, so every pair of accesses has a title of its own.
#pragma once

#include "unit/detect/script.h"

namespace slalom::test {

struct SimulatorOptions {
  int steps = 60;
  bool mixed_sizes = false;  // accesses of 1 to 16 bytes at any offset, instead of whole cells
  int sync_percent = 60;     // percentage of operations that synchronise
};

Script random_execution(uint64_t seed, const SimulatorOptions& options);

// Returns all racing pairs (the steps of both accesses), from the transitive closure of happens-before.
std::vector<std::pair<uint64_t, uint64_t>> naive_races(const TraceLog& log);

}  // namespace slalom::test
