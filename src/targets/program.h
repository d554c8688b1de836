// Targets that are programs: launched, steered and named by process/.
#pragma once

#include <atomic>
#include <memory>

#include "campaign/target.h"
#include "process/launch/debugger.h"
#include "process/launch/program.h"
#include "process/launch/zygote.h"

namespace slalom {

// `options`: library and core are filled in.
Result<Target> make_program_target(const Program& program, LaunchOptions options);

// A target of a capsule. `path`: where its program is now; empty: where it was. `debugger`: to run it under
// that one, if there is one.
Result<Target> open_program(const TargetId& id, const std::string& path, std::shared_ptr<Debugger> debugger);

}  // namespace slalom
