// Reports of kernel races: pairs of accesses grouped and ranked, with names.
//
// Pairs that share a place or a cell belong together, also through others (SKI, section 6.2): one report,
// whose title names the two functions of its most telling pair. A pair tells more if both functions are in
// modules, if it was simultaneous, and if it does not look benign. Nothing is hidden but the kernel's
// internals: a pair with one side in such a function, or called by one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "detect/kernels/kernel_race.h"

namespace slalom {

// `state` has the agents and the circumstances of the races.
std::vector<Verdict> race_reports(std::span<const KernelRaceState::Race> races, const KernelRaceState& state,
                                  const Names& names, KernelInternals& internals);

}  // namespace slalom
