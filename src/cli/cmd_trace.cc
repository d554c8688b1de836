// slalom trace: print a saved trace.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "finding/capsule.h"
#include "report/trace_text.h"
#include "trace/trace_file.h"

namespace slalom {
namespace {

// A trace alone knows numbers only.
class NumberNames : public Names {
 public:
  std::string agent(AgentId id) const override { return id.path(); }
  std::string role(AgentId id) const override { return id.path(); }
  std::string object(ObjectId id) const override { return fmt::format("{:#x}", id.raw); }
  std::string place(Place pc) const override { return fmt::format("{:#x}", pc.raw); }
  std::string source(Place) const override { return {}; }
};

Result<Exit> print(const std::string& file, const std::string& capsule) {
  TRY_ASSIGN(const TraceLog log, load_trace(file));
  if (capsule.empty()) {
    print_trace(std::cout, log, NumberNames());
    return Exit::Clean;
  }
  TRY_ASSIGN(const Finding finding, load_capsule(capsule));
  TRY_ASSIGN(const Target target, open_target(finding.target));
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine(false));
  print_trace(std::cout, log, machine->names());
  return Exit::Clean;
}

}  // namespace

void add_trace(CLI::App& app, Run& run) {
  struct Arguments {
    std::string file, capsule;
  };
  auto a = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("trace", "Print a trace saved with replay --save-trace.");
  verb->add_option("FILE", a->file, "the trace")->required()->type_name("");
  verb->add_option("--capsule", a->capsule,
                   "take the names of agents, places and objects from this capsule's target")
      ->type_name("FILE");
  verb->callback([a, &run] { run = [a] { return print(a->file, a->capsule); }; });
}

}  // namespace slalom
