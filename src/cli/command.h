// What the verbs of the command line share: one file per verb, each adding itself to the parser and giving
// back what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "campaign/target.h"
#include "report/summary.h"

namespace slalom {

// Exit codes of the command.
enum class Exit : int { Clean = 0, Findings = 1, Usage = 2, Internal = 3 };

using Run = std::function<Result<Exit>()>;

// Each adds its verb to `app` and sets `run` when the verb is chosen.
void add_explore(CLI::App& app, Run& run);
void add_replay(CLI::App& app, Run& run);
void add_findings(CLI::App& app, Run& run);
void add_trace(CLI::App& app, Run& run);
void add_doctor(CLI::App& app, Run& run);

// Targets: from what the user names, or from what a capsule holds.
Result<Target> open_target(const std::string& path, const std::vector<std::string>& settings);
Result<Target> open_target(const TargetId& id);

// The terminal.
bool is_terminal(int descriptor);
size_t terminal_width();
Style output_style();  // colours if standard output is a terminal and NO_COLOR is not set

// Ctrl-C asks a search to end; a second one ends the process.
void watch_interrupt();
bool interrupted();

}  // namespace slalom
