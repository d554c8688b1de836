// Targets that are programs: launched, steered and named by process/.
#pragma once

#include <atomic>
#include <memory>

#include "campaign/target.h"
#include "process/launch/debugger.h"
#include "process/launch/program.h"
#include "process/launch/zygote.h"

namespace slalom {

// Fills in library and core of `options`.
Result<Target> make_program_target(const Program& program, LaunchOptions options);

// Opens a capsule's target. `path` is the program's current place; empty means the capsule's. Runs it under
// `debugger` unless that is nullptr.
Result<Target> open_program(const TargetId& id, const std::string& path, std::shared_ptr<Debugger> debugger);

}  // namespace slalom
