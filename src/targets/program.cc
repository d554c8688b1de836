#include "targets/program.h"

#include <fmt/ranges.h>
#include <sched.h>

#include <filesystem>

#include "learn/conflicts.h"
#include "process/launch/surroundings.h"
#include "process/program_machine.h"

namespace slalom {
namespace {

constexpr uint64_t kLongSteps = 20'000;

// Returns the library's path: beside the command in a build directory, below lib/ in an installation.
std::string preload_library() {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::filesystem::path installed = folder.parent_path() / "lib" / "slalom" / "libslalom_preload.so";
  return std::filesystem::exists(installed, ignored) ? installed.string()
                                                     : (folder / "libslalom_preload.so").string();
}

// Returns the cores that this process may use, beginning with its current one.
std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<int> cores;
  const int here = std::max(0, sched_getcpu());
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (const int core = (here + i) % CPU_SETSIZE; CPU_ISSET(core, &set)) cores.push_back(core);
  return cores.empty() ? std::vector<int>{0} : cores;
}

std::string scope_in_words(const Program& program) {
  const std::string inside = fmt::format("{}", fmt::join(program.scope, ", "));
  if (program.atomic.empty()) return inside;
  return fmt::format("{} but {}", inside.empty() ? "everything" : inside, fmt::join(program.atomic, ", "));
}

}  // namespace

Result<Target> make_program_target(const Program& program, LaunchOptions options) {
  options.library = preload_library();
  struct Shared {
    std::shared_ptr<ProgramNames> names = std::make_shared<ProgramNames>();
    std::vector<int> cores = usable_cores();
    std::atomic<size_t> machines{0};
  };
  auto shared = std::make_shared<Shared>();
  Target target;
  target.id = make_target("program", program.name(), to_text(program));
  target.make_machine = [program, options,
                         shared](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
    LaunchOptions own = options;
    if (use.from_start) own.begin = LaunchOptions::Begin::AtMain;
    own.orders_set_up = use.orders_set_up;
    own.core = shared->cores[shared->machines++ % shared->cores.size()];
    TRY_ASSIGN(std::unique_ptr<ProgramMachine> machine, ProgramMachine::make(program, own, shared->names));
    return std::unique_ptr<Machine>(std::move(machine));
  };
  target.reports.surroundings = [program, shared] {
    return surroundings_of(program, shared->names->modules(), SLALOM_VERSION);
  };
  target.traits.yields = true;
  target.traits.long_steps = kLongSteps;
  target.traits.atomics = is_instrumented(program);
  target.make_learner = [](bool atomics) { return std::make_unique<ConflictLearner>(atomics); };
  target.reports.sight = [shared] { return shared->names->sight(); };
  target.traits.most_places = preload::kMostPlaces;
  target.limits.scope = scope_in_words(program);
  if (program.timeouts == Program::Timeouts::Idle)
    target.limits.standing.push_back(
        {Caveat::Kind::IdleTimeouts,
         "time limits that run out while something else can happen (--timeouts idle)"});
  return target;
}

Result<Target> open_program(const TargetId& id, const std::string& path, std::shared_ptr<Debugger> debugger) {
  TRY_ASSIGN(Program program, parse_program(id.content));
  if (!path.empty()) program.path = std::filesystem::absolute(path).lexically_normal().string();
  TRY(check_unchanged(program));
  LaunchOptions options;
  // In seconds. The recorded execution ended, but a user of a debugger takes longer.
  options.patience = debugger ? 86'400 : 60;
  options.debugger = std::move(debugger);
  options.max_set_up = UINT64_MAX;  // the recorded set-up ended
  return make_program_target(program, options);
}

}  // namespace slalom
