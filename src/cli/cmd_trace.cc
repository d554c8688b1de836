// slalom trace: print a saved trace.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/consent.h"
#include "finding/capsule.h"
#include "report/trace_text.h"
#include "trace/files/trace_file.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/trace_lines.h"

namespace slalom {
namespace {

// A trace alone contains only numbers.
class NumberNames : public Names {
 public:
  std::string agent(AgentId id) const override { return id.path(); }
  std::string role(AgentId id) const override { return id.path(); }
  std::string object(ObjectId id) const override { return fmt::format("{:#x}", id.raw); }
  std::string place(Place pc) const override { return fmt::format("{:#x}", pc.raw); }
  std::string source(Place) const override { return {}; }
};

// Prints a line for each access and event, as slalom boot --trace does.
void print_lines(const TraceLog& log, const SymbolTable& symbols) {
  vm::TraceLines lines(symbols);
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      std::cout << printable(lines.event(log.events()[entry.index])) << '\n';
      continue;
    }
    const TraceLog::Batch& batch = log.batches()[entry.index];
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Access& access = log.accesses()[batch.first + i];
      const uint64_t step = batch.header.first_step.raw + access.retired;
      std::cout << printable(lines.access(access, step, batch.header.agent)) << '\n';
    }
  }
}

struct TraceArguments {
  std::string file, capsule, kernel;
  bool trust = false;
};

Result<Exit> print(const TraceArguments& arguments) {
  const auto& [file, capsule, kernel, trust] = arguments;
  TRY_ASSIGN(const TraceLog log, load_trace(file));
  if (!kernel.empty()) {
    TRY_ASSIGN(const vm::GuestKernel known, vm::load_guest_kernel(kernel));
    print_lines(log, known.symbols);
    return Exit::Clean;
  }
  if (capsule.empty()) {
    print_trace(std::cout, log, NumberNames());
    return Exit::Clean;
  }
  TRY_ASSIGN(const Capsule opened, open_capsule(capsule));
  TRY(check_consent(opened, {.trust = trust}));  // the target is started to get its names
  TRY_ASSIGN(const Target target, open_target(opened.finding.target, open_options()));
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine({}));
  print_trace(std::cout, log, machine->names());
  return Exit::Clean;
}

}  // namespace

void add_trace(CLI::App& app, Run& run) {
  auto a = std::make_shared<TraceArguments>();
  CLI::App* verb = app.add_subcommand("trace", "Print a trace saved with replay or boot --save-trace.");
  verb->add_option("FILE", a->file, "the trace")->required()->type_name("");
  CLI::Option* capsule =
      verb->add_option("--capsule", a->capsule,
                       "take the names of agents, places and objects from this capsule's target")
          ->type_name("FILE");
  verb->add_option("--kernel", a->kernel,
                   "print a kernel's trace as boot --trace does, with the names of this kernel's functions")
      ->type_name("K")
      ->excludes(capsule);
  add_trust_option(*verb, a->trust);
  verb->callback([a, &run] { run = [a] { return print(*a); }; });
}

}  // namespace slalom
