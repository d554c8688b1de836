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
  verb->callback([a, &run] {
    run = [a]() -> Result<Exit> {
      TRY_ASSIGN(const Target target, open_target(a->file, a->settings));
      return run_search(target, a->search);
    };
  });
}

}  // namespace slalom
