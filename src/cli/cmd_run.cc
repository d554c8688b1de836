// slalom run: search the interleavings of an ordinary program for bugs.
#include <filesystem>
#include <iostream>

#include "cli/search/search.h"
#include "process/judge.h"
#include "process/program_scope.h"
#include "process/uncontrolled.h"
#include "targets/program.h"

namespace slalom {
namespace {

struct RunArguments {
  std::vector<std::string> command;
  std::string timeouts = "any";
  std::string scratch, check, expected_output;
  std::vector<std::string> scope, atomic;
  uint32_t spurious = 0;
  bool any_status = false;
  bool keep_going = false;
  uint32_t patience = 5;
  uint64_t max_set_up = LaunchOptions{}.max_set_up;
  bool from_main = false;
  bool finds_step_limit = false;
  SearchArguments search;
};

Result<Exit> run_program(const RunArguments& arguments) {
  TRY_ASSIGN(Program program, find_program(arguments.command));
  if (arguments.timeouts == "idle")
    program.timeouts = Program::Timeouts::Idle;
  else if (arguments.timeouts != "any")
    return error("--timeouts is any or idle, not \"{}\"", arguments.timeouts);
  program.spurious = arguments.spurious;
  if (!arguments.scratch.empty())
    program.scratch = std::filesystem::absolute(arguments.scratch).lexically_normal().string();
  for (const std::vector<std::string>* parts : {&arguments.scope, &arguments.atomic})
    for (const std::string& part : *parts) TRY(check_scope(part));
  program.check = arguments.check;
  if (!arguments.expected_output.empty()) {
    TRY_ASSIGN(const std::string text, read_expected_output(arguments.expected_output));
    program.expected_output = {arguments.expected_output, text};
  }
  program.scope = arguments.scope;
  program.atomic = arguments.atomic;
  if (arguments.any_status) program.statuses = Program::Statuses::AnyGood;
  LaunchOptions launch;
  launch.patience = arguments.patience;
  launch.interrupted = interrupted;
  launch.uncontrolled = std::make_shared<std::atomic<uint32_t>>(0);
  launch.remarks = std::make_shared<SetUpRemarks>();
  launch.max_set_up = arguments.max_set_up;
  if (arguments.from_main) launch.begin = LaunchOptions::Begin::AtMain;
  TRY_ASSIGN(Target target, make_program_target(program, launch));
  target.reports.uncontrolled = [met = launch.uncontrolled] { return uncontrolled_in_words(*met); };
  target.reports.remarks = [remarks = launch.remarks] { return in_words(*remarks); };
  SearchArguments search = arguments.search;
  search.first = !arguments.keep_going;
  search.campaign.finds_step_limit = arguments.finds_step_limit;
  return run_search(target, search);
}

// Warns of options of slalom among the program's arguments, because the user may have meant them for slalom.
void remark_on_options(const CLI::App& verb, const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string name = command[i].substr(0, command[i].find('='));
    if (name.starts_with("--") && name.size() > 2 && verb.get_option_no_throw(name) != nullptr)
      std::cerr << fmt::format(
          "slalom: {} goes to {}, since it comes after it; options of slalom run come before the program\n",
          printable(name), printable(command.front()));
  }
}

}  // namespace

void add_run(CLI::App& app, Run& run) {
  auto a = std::make_shared<RunArguments>();
  a->search.strategy = "portfolio";
  a->search.choices = "sync";
  a->search.first = true;
  a->search.campaign.shrink_executions = 1'000;  // an execution is a process
  a->search.max_steps = 100'000;
  CLI::App* verb = app.add_subcommand(
      "run", "Explore the interleavings of a program's threads and report what breaks it.");
  verb->add_option("COMMAND", a->command, "the program and its arguments, after --")
      ->required()
      ->type_name("");
  verb->positionals_at_end();
  add_search_options(*verb, a->search);
  verb->get_option("--max-steps")
      ->description("of one execution; if some are longer, and without this option, as many as these need");
  verb->add_flag("--keep-going", a->keep_going, "look for more after the first failure");
  verb->add_option("--spurious", a->spurious,
                   "how often each thread may wake from a condition variable by itself")
      ->type_name("N");
  verb->add_option("--scope", a->scope,
                   "switch only in module:FILE or function:NAME, and in what these call; may be repeated")
      ->type_name("S")
      ->allow_extra_args(false);
  verb->add_option("--atomic", a->atomic, "never switch in these and in what they call; may be repeated")
      ->type_name("S")
      ->allow_extra_args(false);
  verb->add_option("--timeouts", a->timeouts,
                   "when waits with a time limit run out: any (moment), idle (last)")
      ->capture_default_str()
      ->type_name("W");
  verb->add_option("--scratch", a->scratch, "start each execution in a fresh copy of this folder")
      ->type_name("DIR");
  verb->add_flag("--any-status", a->any_status, "an exit status other than 0 is no failure");
  verb->add_option("--expect-output", a->expected_output,
                   "what the program must print, to the letter, in every execution")
      ->type_name("FILE");
  verb->add_option("--check", a->check,
                   "a shell command that reads what the program printed and exits with 0 if all is well")
      ->type_name("COMMAND");
  verb->add_option("--patience", a->patience, "seconds that a thread may compute without an operation")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1, 86'400));
  verb->add_option("--max-set-up", a->max_set_up, "operations before a second thread can exist")
      ->capture_default_str()
      ->type_name("N")
      ->check(whole_number(1, UINT64_MAX));
  verb->add_flag("--from-main", a->from_main,
                 "begin each execution at main(), instead of running the program's set-up once for all");
  verb->footer(search_catalogues);
  verb->callback([a, verb, &run] {
    run = [a, verb] {
      remark_on_options(*verb, a->command);
      a->finds_step_limit = verb->count("--max-steps") == 0;
      return run_program(*a);
    };
  });
}

}  // namespace slalom
