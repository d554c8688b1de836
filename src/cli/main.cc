// slalom: the command line. One file per verb (cmd_<verb>.cc); this one only chooses.
#include <unistd.h>

#include <exception>
#include <iostream>

#include "cli/command.h"

namespace {

constexpr const char* kTour =
    R"(slalom finds, explains and replays concurrency bugs by controlling every interleaving.

  slalom explore FILE.toml        explore the interleavings of a program
  slalom replay CAPSULE           see a bug again, exactly as it was found
  slalom findings                 list the bugs kept in this folder
  slalom trace FILE               print a saved trace
  slalom doctor                   check that this machine has what slalom needs

A first look:
  slalom explore examples/toy/lost-update.toml
  slalom explore examples/toy/readers.toml --set n=11 --strategy dpor
  slalom explore examples/toy/lost-update.toml --strategy pct:depth=2 --schedules 1000 --seed 7

Exit codes: 0 nothing found, 1 bugs found, 2 wrong usage or environment, 3 slalom itself failed.
Every verb explains itself: slalom explore --help
)";

// CLI11 reports parse errors on its own terms; ours all have one shape and say where help is.
int usage_error(const CLI::App& app, const std::string& what) {
  std::string verb;
  for (const CLI::App* sub : app.get_subcommands()) verb = " " + sub->get_name();
  std::cerr << "slalom: " << what << "\n  try: slalom" << verb << " --help\n";
  return static_cast<int>(slalom::Exit::Usage);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app;
  app.set_help_flag("");
  bool help = false;
  bool version = false;
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.require_subcommand(0, 1);
  slalom::Run run;
  slalom::add_explore(app, run);
  slalom::add_replay(app, run);
  slalom::add_findings(app, run);
  slalom::add_trace(app, run);
  slalom::add_doctor(app, run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* sub : app.get_subcommands()) std::cout << sub->help();
    return 0;
  } catch (const CLI::ParseError& failure) {
    return usage_error(app, failure.what());
  }
  if (version) {
    std::cout << "slalom " SLALOM_VERSION "\n";
    return 0;
  }
  if (!run) {
    if (argc > 1 && !help) return usage_error(app, "which verb?");
    std::cout << kTour;
    return 0;
  }
  try {
    const slalom::Result<slalom::Exit> result = run();
    if (!result.ok()) {
      std::cerr << "slalom: " << result.error().message << "\n";
      return static_cast<int>(slalom::Exit::Usage);
    }
    return static_cast<int>(*result);
  } catch (const std::exception& failure) {
    std::cerr << "slalom: internal error: " << failure.what()
              << "\n  This is a bug in slalom, not in your program. Please report it with the lines above.\n";
    return static_cast<int>(slalom::Exit::Internal);
  }
}
