// Caveat: one thing that the claim of a search leaves out, and its effect on the word *exhausted*.
//
// The set of kinds is closed: a new kind does not compile until it has a name and a weight. campaign/claims.h
// decides which caveats a search has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slalom {

// Something that a claim leaves out. docs/formats.md lists the names.
struct Caveat {
  enum class Kind : uint8_t {
    // The search ended before the strategy did.
    ScheduleLimit,
    TimeLimit,
    Interrupted,
    FirstFailure,
    Sampled,  // the search ended by itself, but sampling never executes everything
    // Executions that prove nothing about the schedules that they stand for.
    StepLimit,
    NotesLimit,
    CheckLimit,
    Unfinished,    // abandoned for a reason that is no proof
    WaitsGuessed,  // abandoned or steered, because an agent seemed to wait
    NotRepeated,
    Failed,
    BehindFailures,  // most executions ended in a failure, which hides what comes after it
    // Choices that the search did not make.
    Bound,
    Fairness,
    BlockedOnly,
    LearnedPlaces,
    LateRaces,
    LateAtomics,
    RacesIgnored,
    TooManyPlaces,
    Scope,
    Contexts,
    IdleTimeouts,
    // Parts of the target that slalom does not see or control.
    AccessesNotSeen,
    AccessesPartlySeen,
    LibrariesNotSeen,
    Uncontrolled,
    UnpinnedThreads,
    SerialOrders,
  };
  enum class Weight : uint8_t {
    Refutes,    // the claim must not say *exhausted*
    Qualifies,  // stands beside *exhausted* in the same sentence
    Remarks,    // concerns what was examined, not what was executed
  };
  static constexpr int kKinds = static_cast<int>(Kind::SerialOrders) + 1;

  Kind kind{};
  std::string text;  // a noun phrase: the part that is left out
  bool operator==(const Caveat&) const = default;
};
std::string_view name(Caveat::Kind kind);  // "step-limit"
Caveat::Weight weight_of(Caveat::Kind kind);

}  // namespace slalom
