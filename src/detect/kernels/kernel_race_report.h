// Reports of kernel races: pairs of accesses grouped and ranked, with names.
//
// Pairs that share a place or a cell, directly or through other pairs, form one report (SKI, section 6.2).
// Its title names the two functions of the highest-ranked pair. A pair ranks higher if both functions are in
// modules, if it was simultaneous, and if it does not look benign. Nothing is left out, except pairs in the
// kernel's internals: one side is in such a function, or is called by one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "detect/kernels/kernel_race.h"

namespace slalom {

// `state` holds the agents and circumstances of the races.
std::vector<Verdict> race_reports(std::span<const KernelRaceState::Race> races, const KernelRaceState& state,
                                  const Names& names, KernelInternals& internals);

}  // namespace slalom
