// The common interface of the command line's verbs. There is one file per verb; each adds itself to the
// parser and sets the function to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "campaign/target.h"
#include "finding/finding.h"
#include "report/core/summary.h"
#include "targets/open.h"

namespace slalom {

// Exit codes of the command.
enum class Exit : int { Clean = 0, Findings = 1, Usage = 2, Internal = 3 };

using Run = std::function<Result<Exit>()>;

// Each add_...() adds its verb to `app`, and sets `run` when the verb is chosen.
void add_explore(CLI::App& app, Run& run);
void add_run(CLI::App& app, Run& run);
void add_cc(CLI::App& app, Run& run);
void add_replay(CLI::App& app, Run& run);
void add_findings(CLI::App& app, Run& run);
void add_trace(CLI::App& app, Run& run);
void add_detect(CLI::App& app, Run& run);
void add_boot(CLI::App& app, Run& run);
void add_kernel(CLI::App& app, Run& run);
void add_new(CLI::App& app, Run& run);
void add_doctor(CLI::App& app, Run& run);

// Values of options. The parser checks sizes and counts, so that all invalid ones get the same kind of error.
CLI::Validator whole_number(uint64_t least, uint64_t most = UINT64_MAX);
Result<double> parse_duration(const std::string& text);       // "90", "90s", "5m", "2h": in seconds
Result<ChoicePolicy> parse_choices(const std::string& text);  // "everywhere", "sync", "nowhere"

// Returns a finding in two or three lines; the last one is the command that replays it.
std::string brief(const Finding& finding, const std::string& capsule, const Style& style);

// The format of a verb's --help, and of lists of names with explanations after its options.
std::shared_ptr<CLI::FormatterBase> help_format();
std::string help_list(const std::vector<std::pair<std::string, std::string>>& items);

// The terminal.
bool is_terminal(int descriptor);
size_t terminal_width(int descriptor = 1);  // 100 if it is not a terminal
Style output_style();  // colours if standard output is a terminal and NO_COLOR is not set

// From here on Ctrl-C asks a search to end and is acknowledged at once. A second one ends the process.
void watch_interrupt(const char* what_follows = "stopping");
bool interrupted();

// Opens a target with its progress on the terminal, until Ctrl-C.
OpenOptions open_options();

}  // namespace slalom
