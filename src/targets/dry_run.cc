#include "targets/dry_run.h"

#include <algorithm>

#include "explore/runner.h"
#include "vm/control/kernel_machine.h"
#include "vm/guests/linux/linux_traits.h"

namespace slalom {
namespace {

using vm::KernelMachine;

AgentId cpu_of(AgentId agent) {
  while (agent.parent()) agent = agent.parent();
  return agent;
}

// Collects the system calls of each flow from their events.
class CallLog final : public EventSink {
 public:
  explicit CallLog(const std::vector<std::optional<CallProgram>>& flows) : flows_(flows.size()) {
    for (size_t flow = 0; flow < flows.size(); ++flow) {
      if (!flows[flow]) continue;
      flows_[flow].is_list = true;
      for (const CallStep& step : flows[flow]->steps)
        if (step.kind == CallStep::Kind::Call) flows_[flow].calls.push_back({.number = step.number});
    }
  }

  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    Log* log = log_of(event.agent);
    if (log == nullptr) return;
    if (event.op == OpKind::SyscallEnter) {
      if (!log->is_list) log->calls.push_back({.number = event.value});
      // A child process on the same CPU makes other calls than the list.
      if (log->next < log->calls.size() && log->calls[log->next].number == event.value) log->inside = true;
    } else if (event.op == OpKind::SyscallExit && log->inside) {
      log->calls[log->next++].result = event.value;
      log->inside = false;
    }
  }
  void on_end(const Outcome&) override {}

  void on_blocked(AgentId agent) {
    if (Log* log = log_of(agent); log != nullptr && log->inside) log->calls[log->next].waited = true;
  }
  std::vector<DryRun::Call>& calls(size_t flow) { return flows_[flow].calls; }

 private:
  struct Log {
    bool is_list = false;
    bool inside = false;  // a call has begun and not returned
    size_t next = 0;
    std::vector<DryRun::Call> calls;
  };
  Log* log_of(AgentId agent) {
    for (unsigned cpu = 0; cpu < flows_.size(); ++cpu)
      if (cpu_of(agent) == KernelMachine::cpu_agent(cpu)) return &flows_[cpu];
    return nullptr;
  }

  std::vector<Log> flows_;
};

// Picks the agent that goes on in a dry run.
AgentId next_agent(const ChoicePoint& point, size_t flows, uint8_t timer_vector) {
  if (point.kind == ChoiceKind::Data) return point.current;
  AgentId timer, flow, other;  // the first of each
  for (const Option& option : point.options()) {
    if (option.op.kind == OpKind::IrqEnter) {
      const auto cpu = static_cast<unsigned>(option.op.object.raw);
      if (option.agent != KernelMachine::interrupt_agent(cpu, timer_vector)) return option.agent;
      if (!timer) timer = option.agent;
    } else {
      bool is_flow = false;
      for (unsigned cpu = 0; cpu < flows; ++cpu)
        is_flow = is_flow || cpu_of(option.agent) == KernelMachine::cpu_agent(cpu);
      const bool interrupted = point.kind == ChoiceKind::Ended && point.current.parent() == option.agent;
      if (interrupted || (option.agent == point.current && point.kind == ChoiceKind::Running))
        return option.agent;
      if (option.agent == point.current) continue;
      AgentId& first = is_flow ? flow : other;
      if (!first) first = option.agent;
    }
  }
  // Kernel threads finish what the flows have left to them.
  return other ? other : flow ? flow : timer ? timer : point.current;
}

struct Pass {
  DryRun& run;
  CallLog& log;
  bool everywhere;             // the policy has choice points besides its places
  std::vector<Place> counted;  // sorted
};

bool is_counted(const ChoicePoint& point, const Pass& pass) {
  if (point.kind != ChoiceKind::Running) return false;
  if (pass.everywhere) return true;
  return std::ranges::any_of(point.options(), [&](const Option& option) {
    return option.agent == point.current && std::ranges::binary_search(pass.counted, option.op.pc);
  });
}

// Runs each flow as long as it can go on, and counts its instructions.
class DryWalker final : public Walker {
 public:
  DryWalker(const Machine& machine, Pass pass) : machine_(machine), pass_(pass) {}

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option>,
                                           const Execution&) override {
    count_instructions();
    if (DryRun::Flow* flow = flow_of(point.current); flow != nullptr && is_counted(point, pass_))
      ++flow->choice_points;
    if (point.kind == ChoiceKind::Blocked || point.kind == ChoiceKind::Yielded)
      pass_.log.on_blocked(point.current);
    chosen_ = next_agent(point, pass_.run.flows.size(), vm::linux_traits().timer_vector);
    return Decision{.next = chosen_};
  }
  // Adds the instructions since the last choice to the flow that was chosen there. Also call it at the end.
  void count_instructions() {
    const uint64_t now = machine_.ending().steps.raw;
    if (DryRun::Flow* flow = flow_of(chosen_)) flow->instructions += now - before_;
    before_ = now;
  }

 private:
  DryRun::Flow* flow_of(AgentId agent) {
    for (unsigned cpu = 0; cpu < pass_.run.flows.size(); ++cpu)
      if (cpu_of(agent) == KernelMachine::cpu_agent(cpu)) return &pass_.run.flows[cpu];
    return nullptr;
  }

  const Machine& machine_;
  Pass pass_;
  AgentId chosen_;
  uint64_t before_ = 0;
};

Outcome execute(Machine& machine, const Inputs& inputs, Pass pass) {
  RunnerOptions options;
  options.inputs = inputs;
  options.recording = Recording::Choices;  // events must come before the choice point that follows them
  options.fair = false;
  options.checkpoint_every = 0;
  Runner runner(machine, nullptr, options);
  runner.set_extra_sink(&pass.log);
  DryWalker walker(machine, pass);
  Outcome outcome = runner.run(Task{}, walker).outcome;
  walker.count_instructions();
  return outcome;
}

}  // namespace

DryRun dry_run(Machine& machine, const std::vector<std::optional<CallProgram>>& flows, const Inputs& inputs) {
  DryRun run;
  run.flows.resize(flows.size());
  CallLog log(flows);
  const bool everywhere = inputs.policy.where != ChoicePolicy::Where::Nowhere;
  run.outcome = execute(machine, inputs, {run, log, everywhere, {}});
  for (size_t flow = 0; flow < flows.size(); ++flow) run.flows[flow].calls = std::move(log.calls(flow));
  const Knowledge* knowledge = machine.ending().knowledge;
  const bool is_long = std::holds_alternative<LimitReached>(run.outcome);
  if (everywhere || is_long || knowledge == nullptr || knowledge->places.empty()) return run;
  Inputs again = inputs;
  again.policy.places = knowledge->places;
  for (DryRun::Flow& flow : run.flows) flow.instructions = 0;
  CallLog unused(flows);
  execute(machine, again, {run, unused, false, knowledge->places});
  return run;
}

}  // namespace slalom
