// slalom: the command line. One file per verb (cmd_<verb>.cc); this file only dispatches.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "base/log.h"
#include "base/text/printable.h"
#include "cli/core/command.h"

namespace {

constexpr const char* kTour =
    R"(slalom finds, explains and replays concurrency bugs.

  slalom run -- PROG ...   search the interleavings of a program for bugs
  slalom cc ARGS           compile so that run sees memory accesses (or c++)
  slalom explore FILE      the same for a kernel test or a toy program
  slalom replay CAPSULE    see a bug again, exactly as it was found
  slalom findings [DIR]    list the bugs that were found
  slalom trace FILE        print a trace that --save-trace has written
  slalom detect FILE       look for bugs in such a trace, with any detectors
  slalom boot              run a kernel in slalom's virtual machine
  slalom kernel get NAME   fetch a Debian kernel for it
  slalom new KIND NAME     write a file to start from
  slalom doctor            check that this machine has what slalom needs

A first look, with a bug and without:
  slalom explore examples/toy/lost-update.toml
  slalom explore examples/toy/lost-update.fixed.toml

Exit codes: 0 nothing found, 1 bugs found, 2 wrong usage or environment,
3 slalom itself failed. Every verb explains itself: slalom help explore
)";

int usage_error(const CLI::App& app, const std::string& what) {
  std::string verb;
  for (const CLI::App* sub : app.get_subcommands()) verb = " " + sub->get_name();
  std::cerr << "slalom: " << slalom::printable_lines(what) << "\n  try: slalom" << verb << " --help\n";
  return static_cast<int>(slalom::Exit::Usage);
}

std::string unexpected(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining(true);
  const std::string what = extra.empty() ? "" : extra.front();
  if (what.starts_with("-")) return fmt::format("there is no option {}", what);
  if (app.get_subcommands().empty()) return fmt::format("there is no verb \"{}\"", what);
  return fmt::format("one argument too many: {}", what);
}

// slalom help VERB prints what slalom VERB --help does. slalom help prints the tour.
int help(const CLI::App& app, const std::string& verb) {
  if (verb.empty()) {
    std::cout << kTour;
    return 0;
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() != verb) continue;
    std::cout << sub->help();
    return 0;
  }
  return usage_error(app, fmt::format("there is no verb \"{}\"", slalom::printable(verb)));
}

// Reports that memory ran out, without allocating any. This is no internal error, and there is no result.
int out_of_memory() {
  constexpr std::string_view kText =
      "slalom: out of memory: raise the limit (ulimit -v), or use less of it: fewer --workers, a smaller "
      "--max-steps, a guest with less memory\n";
  if (write(STDERR_FILENO, kText.data(), kText.size()) < 0) return static_cast<int>(slalom::Exit::Usage);
  return static_cast<int>(slalom::Exit::Usage);
}

// Memory may also run out in code that cannot throw.
void on_terminate() {
  try {
    if (const std::exception_ptr failure = std::current_exception()) std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    _exit(out_of_memory());
  } catch (...) {
  }
  std::abort();
}

// Debug logs as SLALOM_LOG says (base/log.h).
slalom::Result<void> start_logs_of_environment() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return slalom::start_logs(variable("SLALOM_LOG"), variable("SLALOM_LOG_FILE"));
}

// Opens missing standard descriptors, because otherwise the files opened first would take their numbers.
void open_standard_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number) break;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  std::set_terminate(on_terminate);
  CLI::App app;
  app.set_help_flag("-h,--help", "this text");
  app.formatter(slalom::help_format());
  bool version = false;
  app.add_flag("--version", version);
  app.require_subcommand(0, 1);
  slalom::Run run;
  slalom::add_run(app, run);
  slalom::add_cc(app, run);
  slalom::add_explore(app, run);
  slalom::add_replay(app, run);
  slalom::add_findings(app, run);
  slalom::add_trace(app, run);
  slalom::add_detect(app, run);
  slalom::add_boot(app, run);
  slalom::add_kernel(app, run);
  slalom::add_new(app, run);
  slalom::add_doctor(app, run);

  if (argc > 1 && argv[1] == std::string_view("help")) return help(app, argc > 2 ? argv[2] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto verbs = app.get_subcommands();
    std::cout << (verbs.empty() ? kTour : verbs.front()->help());
    return 0;
  } catch (const CLI::ExtrasError&) {
    return usage_error(app, unexpected(app));
  } catch (const CLI::ParseError& failure) {
    return usage_error(app, failure.what());
  }
  if (version || !run) {
    std::cout << (version ? "slalom " SLALOM_VERSION "\n" : kTour);
    return 0;
  }
  try {
    const slalom::Result<void> logged = start_logs_of_environment();
    const slalom::Result<slalom::Exit> result =
        logged.ok() ? run() : slalom::Result<slalom::Exit>(logged.error());
    if (!result.ok()) {
      // The message may quote files from anybody.
      std::cerr << "slalom: " << slalom::printable_lines(result.error().message) << "\n";
      return static_cast<int>(slalom::Exit::Usage);
    }
    if (!std::cout.flush()) {
      std::cerr << "slalom: the results could not be written to standard output; is the disk full?\n";
      return static_cast<int>(slalom::Exit::Usage);
    }
    return static_cast<int>(*result);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& failure) {  // from threads and from files
    std::cerr
        << "slalom: the system refuses what slalom needs: " << slalom::printable_lines(failure.what())
        << "\n  Check the limits (ulimit -a), the permissions, and that the current folder still exists.\n";
    return static_cast<int>(slalom::Exit::Usage);
  } catch (const std::exception& failure) {
    std::cerr << "slalom: internal error: " << slalom::printable_lines(failure.what())
              << "\n  This is a bug in slalom, not in your program. Please report it with the lines above.\n";
    return static_cast<int>(slalom::Exit::Internal);
  }
}
