// Consent: a capsule may come from anybody, and a replay can run any program that the capsule names. So
// slalom runs a capsule's commands only if this user's slalom made the capsule here, or the user gives
// --trust. Not needed for targets that run inside slalom: toy programs, and kernels in the virtual machine.
#pragma once

#include <string>
#include <vector>

#include "cli/core/command.h"
#include "finding/capsule.h"

namespace slalom {

struct Consent {
  bool trust = false;      // the user gave --trust
  bool debugs = false;     // gdb will be started
  std::string program_at;  // the program's place given by the user; empty means the capsule's
};

// Fails without consent, with an error that shows all commands that would run and how to allow them.
Result<void> check_consent(const Capsule& capsule, const Consent& consent);

void add_trust_option(CLI::App& verb, bool& trust);

}  // namespace slalom
