// slalom explore: search the interleavings of a target for bugs.
#include "cli/search.h"

namespace slalom {

void add_explore(CLI::App& app, Run& run) {
  struct Arguments {
    std::string file;
    std::vector<std::string> settings;
    SearchArguments search;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand(
      "explore", "Explore the interleavings of a program and report the ones that break it.");
  verb->add_option("FILE", a->file, "a toy program (docs/toy-language.md)")->required()->type_name("");
  verb->add_option("--set", a->settings, "a parameter of the program; may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  add_search_options(*verb, a->search);
  verb->footer(search_catalogues);
  verb->callback([a, verb, &run] {
    run = [a, verb]() -> Result<Exit> {
      TRY_ASSIGN(const Target target, open_target(a->file, a->settings));
      SearchArguments search = a->search;
      if (!target.choices.empty() && verb->count("--choices") == 0) search.choices = target.choices;
      if (!target.detectors.empty() && verb->count("--detectors") == 0) search.detectors = target.detectors;
      if (target.max_steps != 0 && verb->count("--max-steps") == 0) search.max_steps = target.max_steps;
      return run_search(target, search);
    };
  });
}

}  // namespace slalom
