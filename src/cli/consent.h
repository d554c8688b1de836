// Consent: a capsule may come from anybody, and a replay can run any program that it names. So slalom runs
// what a capsule names only if this user's slalom made the capsule here, or the user says --trust.
//
// Not needed for what a replay runs inside slalom alone: toy programs, and kernels in the virtual machine.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "finding/capsule.h"

namespace slalom {

struct Consent {
  bool trust = false;      // the user said --trust
  bool debugs = false;     // gdb will be started
  std::string program_at;  // where the user says the program is; empty: where the capsule says
};

// An error that shows all that would run, and the command that allows it.
Result<void> check_consent(const Capsule& capsule, const Consent& consent);

void add_trust_option(CLI::App& verb, bool& trust);

}  // namespace slalom
