#include "targets/kernel_dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/image.h"
#include "inputs/system_calls.h"
#include "targets/dry_run.h"
#include "targets/kernel_content.h"
#include "vm/control/kernel_machine.h"
#include "vm/scenario/kernel_test.h"
#include "vm/scenario/machine_cache.h"

namespace slalom {
namespace {

std::string end_in_words(const Outcome& outcome) {
  return std::visit(
      Overloaded{
          [](const Exited&) { return std::string(); },
          [](const Deadlocked&) { return std::string("no flow can go on: each that has not ended waits"); },
          [](const Faulted& fault) { return fault.what; },
          [](const LimitReached&) { return std::string("the limit of instructions is reached"); },
          [](const Abandoned&) { return std::string("interrupted"); },
          [](const ToolError& trouble) { return trouble.message; },
      },
      outcome);
}

KernelDryRun::Flow flow_in_words(const vm::KernelTest::Flow& flow, size_t number, const Names& names,
                                 const DryRun::Flow& ran) {
  KernelDryRun::Flow shown{flow.name, ran.instructions, ran.choice_points, {}};
  for (size_t i = 0; i < ran.calls.size(); ++i) {
    const DryRun::Call& call = ran.calls[i];
    shown.calls.push_back({.line = i < flow.calls.sources.size() ? flow.calls.sources[i].line : 0,
                           .text = names.system_call(
                               vm::KernelMachine::cpu_agent(static_cast<unsigned>(number)), i, call.number),
                           .result = call.result ? describe_result(*call.result) : "",
                           .waited = call.waited});
  }
  return shown;
}

// Shows the prepared calls with the results that they had when the machine was prepared.
void show_prepared(const vm::KernelTest& test, const std::string& machine, KernelDryRun& shown) {
  const Result<vm::MachineCache> cache = vm::MachineCache::open();
  if (!cache.ok()) return;
  const std::vector<std::vector<uint8_t>> all = cache->prepared(machine);
  for (size_t list = 0; list < all.size(); ++list) {
    const CallProgram* program = test.prepared(list);
    if (program == nullptr || program->sources.empty()) continue;
    const Result<CallResults> results = decode_results(*program, all[list]);
    if (!results.ok()) continue;
    const std::string owner = list == 0 ? "all flows" : test.flows[list - 1].name;
    KernelDryRun::Flow flow{.name = owner};
    for (size_t i = 0; i < program->sources.size(); ++i) {
      const CallProgram::Source& source = program->sources[i];
      const std::string result = describe_result(results->values[i]);
      flow.calls.push_back({.line = source.line, .text = source.text, .result = result});
      if (result.starts_with("-"))
        shown.warnings.push_back(
            fmt::format("{}:{}: the prepared call {} gives {}", test.file, source.line, source.text, result));
    }
    shown.prepared.push_back(std::move(flow));
  }
}

}  // namespace

Result<KernelDryRun> dry_run_kernel(const Target& target, const std::function<bool()>& stop) {
  TRY_ASSIGN(const KernelContent content, parse_kernel_content(target.id.content));
  TRY_ASSIGN(const vm::KernelTest test, vm::parse_kernel_test(content.text, content.origin));
  std::vector<std::optional<CallProgram>> lists;
  for (const vm::KernelTest::Flow& flow : test.flows)
    lists.push_back(flow.kind == vm::KernelTest::Flow::Kind::Calls ? std::optional(flow.calls)
                                                                   : std::nullopt);
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine({.recognise = {}}));
  const ChoicePolicy policy{.where = target.limits.scope.empty() ? ChoicePolicy::Where::Nowhere
                                                                 : ChoicePolicy::Where::Everywhere};
  const DryRun ran =
      dry_run(*machine, lists, {.policy = policy, .max_steps = target.defaults.max_steps, .stop = stop});
  KernelDryRun shown{.ended = end_in_words(ran.outcome)};
  show_prepared(test, content.machine, shown);
  uint64_t choice_points = 0;
  for (size_t i = 0; i < test.flows.size(); ++i) {
    shown.flows.push_back(flow_in_words(test.flows[i], i, machine->names(), ran.flows[i]));
    choice_points += ran.flows[i].choice_points;
  }
  if (choice_points == 0 && std::holds_alternative<Exited>(ran.outcome) && test.flows.size() > 1)
    shown.warnings.push_back(
        "the flows do not communicate: no flow uses memory of the kernel that another one writes, so there "
        "is "
        "nothing to explore; slalom explore --dry shows what their calls return");
  return shown;
}

}  // namespace slalom
