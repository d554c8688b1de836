// slalom explore: search the interleavings of a target for bugs.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "campaign/stress.h"
#include "cli/kernel/dry_run_output.h"
#include "cli/search/search.h"
#include "finding/finding_json.h"
#include "kernel_store/kernel_name.h"

namespace slalom {

namespace {

Result<Exit> stress(const Target& target, uint64_t runs, const SearchArguments& search) {
  TRY_ASSIGN(const StressResult all, run_stress(target, {.runs = runs,
                                                         .seed = search.seed,
                                                         .detectors = search.detectors,
                                                         .workers = search.campaign.workers,
                                                         .stop = interrupted}));
  if (search.json) {
    nlohmann::ordered_json json;
    json["target"] = target.id.name;
    json["runs"] = all.runs;
    json["failures"] = all.failures;
    json["titles"] = all.titles;
    std::cout << json_text(json);
  } else {
    for (const auto& [title, times] : all.titles)
      std::cout << fmt::format("{:>6} x {}\n", times, printable(title));
    std::cout << fmt::format("{}: {} of {} without control failed\n", printable(target.id.name),
                             human_number(all.failures), plural(all.runs, "run"));
  }
  return all.failures > 0 ? Exit::Findings : Exit::Clean;
}

Result<Exit> show_dry_run(const Target& target, bool json) {
  if (target.id.kind != "kernel") return error("{} is no kernel test: leave out --dry", target.id.name);
  TRY_ASSIGN(const KernelDryRun run, dry_run_kernel(target, interrupted));
  if (json)
    std::cout << json_text(dry_run_json(target.id.name, run));
  else
    std::cout << dry_run_text(target.id.name, run, terminal_width());
  std::cout << std::flush;
  print_warnings(run);
  return Exit::Clean;
}

// Warns of flows that do not communicate. A test may run for very long, so this gives up after a second.
Result<void> warn_before_search(const Target& target) {
  using Clock = std::chrono::steady_clock;
  const auto stops = [end = Clock::now() + std::chrono::seconds(1)] {
    return interrupted() || Clock::now() >= end;
  };
  TRY_ASSIGN(const KernelDryRun dry, dry_run_kernel(target, stops));
  print_warnings(dry);
  return {};
}

}  // namespace

void add_explore(CLI::App& app, Run& run) {
  struct Arguments {
    std::string file;
    std::vector<std::string> settings, scope;
    std::string kernel;
    std::filesystem::path modules;
    uint64_t stress = 0;
    bool dry = false;
    SearchArguments search;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand(
      "explore", "Explore the interleavings of a kernel test or toy program; report its bugs.");
  verb->add_option("FILE", a->file,
                   "a kernel test (docs/howto-kernel-test.md) or a toy program (docs/toy-language.md); for "
                   "programs there is "
                   "slalom run, for a piece of C++ slalom::check (docs/howto-check.md)")
      ->required()
      ->type_name("");
  verb->add_option("--set", a->settings, "of a toy program: a parameter; may be repeated")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  verb->add_option("--stress", a->stress,
                   "of a kernel test: no search, but so many plain runs without control, for comparing with")
      ->type_name("N")
      ->check(whole_number(1));
  verb->add_flag("--dry", a->dry,
                 "of a kernel test: no search, but one run of the flows one after the other, with the result "
                 "of each call")
      ->excludes("--stress");
  verb->add_option("--kernel", a->kernel,
                   "of a kernel test: explore this kernel, not the file's: a name as in slalom kernel list, "
                   "or a bzImage or "
                   "vmlinux")
      ->type_name("K");
  verb->add_option("--modules", a->modules,
                   "of a kernel test with a kernel of your own: the directory with its modules (found by "
                   "itself in the "
                   "kernel's build tree and in /lib/modules)")
      ->type_name("DIR");
  verb->add_option("--scope", a->scope,
                   "of a kernel test: order only accesses of module:NAME or function:NAME, and of what these "
                   "call; may be repeated")
      ->type_name("S")
      ->allow_extra_args(false);
  add_search_options(*verb, a->search);
  verb->add_flag("--expect", a->search.expect,
                 "exit with 0 if what was found is what the file's [expect] lists: one of it at least, and "
                 "nothing else")
      ->excludes("--stress");
  verb->get_option("--save-trace")->excludes("--stress")->excludes("--dry");
  verb->footer(search_catalogues);
  verb->callback([a, verb, &run] {
    run = [a, verb]() -> Result<Exit> {
      watch_interrupt("stopping; keeping what was found");
      OpenOptions options = open_options();
      options.kernel = a->kernel;
      if (!a->kernel.empty() && !vm::looks_like_kernel_name(a->kernel))
        options.kernel = std::filesystem::absolute(a->kernel).string();
      if (!a->modules.empty()) options.module_directory = std::filesystem::absolute(a->modules).string();
      Result<Target> opened = open_target(a->file, a->settings, a->scope, options);
      if (!opened.ok() && interrupted()) {  // no execution reached its end
        std::cerr << fmt::format("slalom: {}; nothing was explored\n",
                                 printable_lines(opened.error().message));
        return Exit::Usage;
      }
      TRY_ASSIGN(const Target target, std::move(opened));
      if (a->dry) return show_dry_run(target, a->search.json);
      SearchArguments search = a->search;
      if (!target.defaults.choices.empty() && verb->count("--choices") == 0)
        search.choices = target.defaults.choices;
      if (!target.defaults.detectors.empty() && verb->count("--detectors") == 0)
        search.detectors = target.defaults.detectors;
      if (target.defaults.max_steps != 0 && verb->count("--max-steps") == 0)
        search.max_steps = target.defaults.max_steps;
      if (a->stress > 0) return stress(target, a->stress, search);
      if (target.id.kind == "kernel") TRY(warn_before_search(target));
      return run_search(target, search);
    };
  });
}

}  // namespace slalom
