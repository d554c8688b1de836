// Caveat: one thing that the claim of a search leaves out, and what that does to the word *exhausted*.
//
// The kinds are closed: a new one does not compile until it has a name and a weight. Which caveats a search
// has is decided in campaign/claims.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slalom {

// What a claim leaves out. The names are in docs/formats.md.
struct Caveat {
  enum class Kind : uint8_t {
    // Why the search ended before the strategy did.
    ScheduleLimit,
    TimeLimit,
    Interrupted,
    FirstFailure,
    Sampled,  // it ended by itself, but never meant to execute everything
    // Executions that prove nothing about what they were made for.
    StepLimit,
    NotesLimit,
    CheckLimit,
    Unfinished,    // given up, for no reason that is a proof
    WaitsGuessed,  // given up, or steered, since an agent seemed to wait
    NotRepeated,
    Failed,
    BehindFailures,  // most ended in a failure, which hides what comes after it
    // Choices that were not made.
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
    // What is not seen or not controlled.
    AccessesNotSeen,
    AccessesPartlySeen,
    LibrariesNotSeen,
    Uncontrolled,
    UnpinnedThreads,
    SerialOrders,
  };
  enum class Weight : uint8_t {
    Refutes,    // takes the word *exhausted* away
    Qualifies,  // stands beside it, in the same sentence
    Remarks,    // is about what was looked at, not about what was executed
  };
  static constexpr int kKinds = static_cast<int>(Kind::SerialOrders) + 1;

  Kind kind{};
  std::string text;  // what is left out, as a noun phrase
  bool operator==(const Caveat&) const = default;
};
std::string_view name(Caveat::Kind kind);  // "step-limit"
Caveat::Weight weight_of(Caveat::Kind kind);

}  // namespace slalom
