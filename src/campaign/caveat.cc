#include "campaign/caveat.h"

namespace slalom {
namespace {

using CaveatKind = Caveat::Kind;

}  // namespace

std::string_view name(Caveat::Kind kind) {
  switch (kind) {
    case CaveatKind::ScheduleLimit:
      return "schedule-limit";
    case CaveatKind::TimeLimit:
      return "time-limit";
    case CaveatKind::Interrupted:
      return "interrupted";
    case CaveatKind::FirstFailure:
      return "first-failure";
    case CaveatKind::Sampled:
      return "sampled";
    case CaveatKind::StepLimit:
      return "step-limit";
    case CaveatKind::NotesLimit:
      return "notes-limit";
    case CaveatKind::CheckLimit:
      return "check-limit";
    case CaveatKind::Unfinished:
      return "unfinished";
    case CaveatKind::WaitsGuessed:
      return "waits-guessed";
    case CaveatKind::NotRepeated:
      return "not-repeated";
    case CaveatKind::Failed:
      return "failed";
    case CaveatKind::BehindFailures:
      return "behind-failures";
    case CaveatKind::Bound:
      return "bound";
    case CaveatKind::Fairness:
      return "fairness";
    case CaveatKind::BlockedOnly:
      return "blocked-only";
    case CaveatKind::LearnedPlaces:
      return "learned-places";
    case CaveatKind::LateRaces:
      return "late-races";
    case CaveatKind::LateAtomics:
      return "late-atomics";
    case CaveatKind::RacesIgnored:
      return "races-ignored";
    case CaveatKind::TooManyPlaces:
      return "too-many-places";
    case CaveatKind::Scope:
      return "scope";
    case CaveatKind::Contexts:
      return "contexts";
    case CaveatKind::IdleTimeouts:
      return "idle-timeouts";
    case CaveatKind::AccessesNotSeen:
      return "accesses-not-seen";
    case CaveatKind::AccessesPartlySeen:
      return "accesses-partly-seen";
    case CaveatKind::LibrariesNotSeen:
      return "libraries-not-seen";
    case CaveatKind::Uncontrolled:
      return "uncontrolled";
    case CaveatKind::UnpinnedThreads:
      return "unpinned-threads";
    case CaveatKind::SerialOrders:
      return "serial-orders";
  }
  return "";
}

Caveat::Weight weight_of(Caveat::Kind kind) {
  switch (kind) {
    case CaveatKind::ScheduleLimit:
    case CaveatKind::TimeLimit:
    case CaveatKind::Interrupted:
    case CaveatKind::FirstFailure:
    case CaveatKind::Sampled:
    case CaveatKind::StepLimit:
    case CaveatKind::NotesLimit:
    case CaveatKind::CheckLimit:
    case CaveatKind::Unfinished:
    case CaveatKind::NotRepeated:
    case CaveatKind::Failed:
    case CaveatKind::BehindFailures:
    case CaveatKind::BlockedOnly:
    case CaveatKind::LearnedPlaces:
    case CaveatKind::LateRaces:
    case CaveatKind::LateAtomics:
    case CaveatKind::RacesIgnored:
    case CaveatKind::TooManyPlaces:
    case CaveatKind::AccessesNotSeen:
    case CaveatKind::AccessesPartlySeen:
    case CaveatKind::Uncontrolled:
      return Caveat::Weight::Refutes;
    case CaveatKind::WaitsGuessed:
    case CaveatKind::Bound:
    case CaveatKind::Fairness:
    case CaveatKind::Scope:
    case CaveatKind::Contexts:
    case CaveatKind::IdleTimeouts:
    case CaveatKind::LibrariesNotSeen:
    case CaveatKind::UnpinnedThreads:
      return Caveat::Weight::Qualifies;
    case CaveatKind::SerialOrders:
      return Caveat::Weight::Remarks;
  }
  return Caveat::Weight::Refutes;
}

}  // namespace slalom
