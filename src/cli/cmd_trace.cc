// slalom trace: print a saved trace.
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/core/command.h"
#include "cli/core/consent.h"
#include "finding/capsule.h"
#include "learn/communication.h"
#include "learn/conflicts.h"
#include "report/trace_text.h"
#include "trace/files/trace_stream.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/symbol_names.h"
#include "vm/guests/linux/trace_lines.h"

namespace slalom {
namespace {

// Prints a line for each access and event, as slalom boot --trace does.
class LinePrinter final : public EventSink {
 public:
  explicit LinePrinter(const Names& names) : lines_(names) {}
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    for (const Access& access : accesses)
      std::cout << printable(lines_.access(access, header.first_step.raw + access.retired, header.agent))
                << '\n';
  }
  void on_event(const Event& event) override { std::cout << printable(lines_.event(event)) << '\n'; }
  void on_end(const Outcome&) override {}

 private:
  vm::TraceLines lines_;
};

Result<void> print_lines(TraceReader& trace, const Names& names, std::string& missing) {
  LinePrinter printer(names);
  TRY_ASSIGN(const TraceEnd end, trace.read_into(printer));
  missing = end.missing;
  return {};
}

Result<void> print_table(TraceReader& trace, const Names& names, std::string& missing) {
  return print_trace(
      std::cout,
      [&](EventSink& sink) -> Result<void> {
        TRY_ASSIGN(const TraceEnd end, trace.read_into(sink));
        missing = end.missing;
        return {};
      },
      names);
}

// Prints what the execution teaches later ones, as a learner finds it in the trace. Instructions with the
// same name are one line.
Result<void> print_places(TraceReader& trace, const Names& names, std::string& missing) {
  std::unique_ptr<Learner> learner;
  if (trace.info().is_of_kernel())
    learner = std::make_unique<CommunicationLearner>();
  else
    learner = std::make_unique<ConflictLearner>(true);
  learner->reset();
  TRY_ASSIGN(const TraceEnd end, trace.read_into(*learner));
  missing = end.missing;
  const auto print = [&](std::string_view title, const std::vector<Place>& places) {
    std::set<std::string> lines;
    for (const Place place : places) {
      const std::string line = names.line(place);
      lines.insert(names.place(place) + (line.empty() ? "" : " (" + line + ")"));
    }
    std::cout << title << (lines.empty() ? ": none" : ":") << '\n';
    for (const std::string& line : lines) std::cout << "  " << printable(line) << '\n';
  };
  const Knowledge& taught = learner->knowledge();
  print("agents communicate at", taught.places);
  if (!taught.atomics.empty())
    print("atomic operations that other synchronisation orders", taught.ordered_atomics());
  return {};
}

struct TraceArguments {
  std::string file, capsule, kernel;
  bool trust = false, numbers = false, places = false;
};

Result<void> print(const TraceArguments& arguments, TraceReader& trace, std::string& missing) {
  if (arguments.places) return print_places(trace, trace.names(), missing);
  if (!arguments.kernel.empty()) {
    TRY_ASSIGN(const vm::GuestKernel known, vm::load_guest_kernel(arguments.kernel));
    return print_lines(trace, vm::SymbolNames(known.symbols), missing);
  }
  if (arguments.numbers) return print_table(trace, StoredNames(), missing);
  if (trace.info().kind == "boot") return print_lines(trace, trace.names(), missing);
  if (arguments.capsule.empty()) return print_table(trace, trace.names(), missing);
  TRY_ASSIGN(const Capsule opened, open_capsule(arguments.capsule));
  TRY(check_consent(opened, {.trust = arguments.trust}));  // the target is started to get its names
  TRY_ASSIGN(const Target target, open_target(opened.finding.target, open_options()));
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine({}));
  return print_table(trace, machine->names(), missing);
}

Result<Exit> print(const TraceArguments& arguments) {
  TRY_ASSIGN(TraceReader trace, TraceReader::open(arguments.file));
  std::string missing;
  TRY(print(arguments, trace, missing));
  if (!missing.empty()) std::cerr << "slalom: the trace is not complete: " << missing << "\n";
  return Exit::Clean;
}

}  // namespace

void add_trace(CLI::App& app, Run& run) {
  auto a = std::make_shared<TraceArguments>();
  CLI::App* verb = app.add_subcommand("trace", "Print a trace that --save-trace has written.");
  verb->add_option("FILE", a->file, "the trace")->required()->type_name("");
  CLI::Option* capsule = verb->add_option("--capsule", a->capsule,
                                          "take the names of agents, places and objects from this capsule's "
                                          "target (traces before version 3 have none)")
                             ->type_name("FILE");
  CLI::Option* kernel = verb->add_option("--kernel", a->kernel,
                                         "print a kernel's trace as boot --trace does, with the names of "
                                         "this kernel's functions, not with those in the trace")
                            ->type_name("K")
                            ->excludes(capsule);
  verb->add_flag("--numbers", a->numbers, "print numbers instead of names")
      ->excludes(capsule)
      ->excludes(kernel);
  verb->add_flag("--places", a->places,
                 "print only the instructions by which agents communicate: where a search learns to switch")
      ->excludes(capsule)
      ->excludes(kernel);
  add_trust_option(*verb, a->trust);
  verb->callback([a, &run] { run = [a] { return print(*a); }; });
}

}  // namespace slalom
