// Targets that are kernel tests: a TOML file that names a kernel, flows of system calls, and what to look at.
#include "cli/kernel_target.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <sstream>

#include "base/file.h"
#include "base/rng.h"
#include "cli/command.h"
#include "detect/detector_set.h"
#include "vm/control/kernel_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/guest_kernel.h"
#include "vm/guests/linux/guest_lines.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/prepare.h"
#include "vm/scenario/serial_orders.h"
#include "vm/snapshot/copy.h"

namespace slalom {
namespace {

// What executions were like: their lengths, and how often a CPU seemed to wait (SKI, tables 5 to 8).
class ExecutionFigures {
 public:
  void add(const vm::KernelMachine& machine) {
    const std::lock_guard lock(mutex_);
    instructions_.push_back(machine.instructions());
    const auto waits = machine.liveness_counts();
    bool any = false;
    for (unsigned why = 1; why < waits.size(); ++why) {
      executions_[why] += waits[why] > 0;
      times_[why] += waits[why];
      any = any || waits[why] > 0;
    }
    executions_[0] += any;
  }
  std::vector<std::pair<std::string, double>> take() {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<std::string, double>> figures;
    std::vector<uint64_t> all = std::exchange(instructions_, {});
    const auto executions = std::exchange(executions_, {});
    const auto times = std::exchange(times_, {});
    if (all.empty()) return figures;
    std::ranges::sort(all);
    const auto count = static_cast<double>(all.size());
    uint64_t sum = 0;
    for (const uint64_t one : all) sum += one;
    figures.emplace_back("instructions_median", static_cast<double>(all[all.size() / 2]));
    figures.emplace_back("instructions_mean", static_cast<double>(sum) / count);
    for (unsigned why = 1; why < executions.size(); ++why) {
      figures.emplace_back(fmt::format("h{}_share", why), static_cast<double>(executions[why]) / count);
      figures.emplace_back(fmt::format("h{}_mean", why), static_cast<double>(times[why]) / count);
    }
    figures.emplace_back("h_share", static_cast<double>(executions[0]) / count);
    return figures;
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> instructions_;
  std::array<uint64_t, vm::Liveness::kReasons> executions_{}, times_{};  // by reason; 0: any
};

// Machines that stand at the start of one test. Making one means copying a guest's memory, so they are used
// again.
class Stable {
 public:
  Stable(vm::Booted first, vm::KernelMachineOptions options, std::shared_ptr<const Names> names)
      : first_(std::move(first)), options_(std::move(options)), names_(std::move(names)) {}

  Result<std::unique_ptr<vm::KernelMachine>> take() {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<vm::KernelMachine> machine = std::move(idle_.back());
      idle_.pop_back();
      return machine;
    }
    TRY_ASSIGN(vm::Booted copy, vm::copy_of(first_));
    return std::make_unique<vm::KernelMachine>(std::move(copy), options_, names_);
  }
  void give_back(std::unique_ptr<vm::KernelMachine> machine) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(machine));
  }
  ExecutionFigures figures;

 private:
  std::mutex mutex_;
  vm::Booted first_;
  vm::KernelMachineOptions options_;
  std::shared_ptr<const Names> names_;
  std::vector<std::unique_ptr<vm::KernelMachine>> idle_;
};

class Borrowed final : public Machine {
 public:
  using GiveBack = std::function<void(std::unique_ptr<vm::KernelMachine>)>;
  Borrowed(std::unique_ptr<vm::KernelMachine> machine, GiveBack give_back, ExecutionFigures* figures,
           bool checkpoints)
      : machine_(std::move(machine)),
        give_back_(std::move(give_back)),
        figures_(figures),
        checkpoints_(checkpoints) {}
  ~Borrowed() override { give_back_(std::move(machine_)); }

  Result<void> reset(const Inputs& inputs) override { return machine_->reset(inputs); }
  Stop start(EventSink& sink) override { return machine_->start(sink); }
  Stop resume(Decision decision) override {
    Stop stop = machine_->resume(decision);
    if (figures_ != nullptr && std::holds_alternative<Outcome>(stop)) figures_->add(*machine_);
    return stop;
  }
  Step step() const override { return machine_->step(); }
  std::vector<Option> blocked() const override { return machine_->blocked(); }
  uint64_t state_hash() const override { return machine_->state_hash(); }
  uint64_t digest() const override { return machine_->digest(); }
  bool hashes_cheaply() const override { return machine_->hashes_cheaply(); }
  Snapshots* snapshots() override { return checkpoints_ ? machine_->snapshots() : nullptr; }
  const Names& names() const override { return machine_->names(); }
  const Feedback* feedback() const override { return machine_->feedback(); }

 private:
  std::unique_ptr<vm::KernelMachine> machine_;
  GiveBack give_back_;
  ExecutionFigures* figures_;  // null: nobody wants them
  bool checkpoints_;
};

// What a capsule holds of a kernel test: where its file was (paths in it are relative to that), what the
// machine was made from, the version of slalom's virtual machine, the scopes that were given instead of the
// file's own, and the test file itself.
struct Content {
  std::string origin, machine;
  unsigned version = vm::kMachineVersion;
  std::vector<std::string> scope;  // by --scope
  std::string text;
};
std::string to_text(const Content& content) {
  const std::string scope = fmt::format("{}", fmt::join(content.scope, " "));
  return fmt::format("{}\n{}.{}{}{}\n{}", content.origin, content.machine, content.version,
                     scope.empty() ? "" : " ", scope, content.text);
}
Result<Content> parse_content(const std::string& text) {
  const size_t first = text.find('\n');
  const size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
  if (second == std::string::npos) return error("the capsule holds no kernel test");
  Content content{.origin = text.substr(0, first), .text = text.substr(second + 1)};
  std::istringstream words(text.substr(first + 1, second - first - 1));
  words >> content.machine;
  // The first version of the machine had no number.
  const size_t dot = content.machine.find('.');
  content.version = 1;
  if (dot != std::string::npos) {
    const std::string number = content.machine.substr(dot + 1);
    content.machine.resize(dot);
    const char* const end = number.data() + number.size();
    if (std::from_chars(number.data(), end, content.version).ptr != end)
      return error("the capsule holds no kernel test");
  }
  for (std::string one; words >> one;) content.scope.push_back(one);
  return content;
}

// The scopes that a test's search has: its own, or those of the command line.
Result<std::vector<std::string>> scope_of(const vm::KernelTest& test, const std::vector<std::string>& given) {
  std::vector<std::string> wanted = given;
  for (const vm::KernelTest::Entry& one : test.scope) {
    if (!given.empty())
      return error("{}:{}: the test has a scope of its own: leave out --scope, or change it there", test.file,
                   one.line);
    wanted.push_back(one.text);
  }
  for (const std::string& one : given)
    if (!vm::is_scope(one)) return error("--scope {}: {}", one, vm::kScopeAdvice);
  return wanted;
}

// Within a scope interrupts are not explored, unless they are asked for.
vm::Contexts contexts_of(const vm::KernelTest& test, bool scoped) {
  vm::Contexts contexts;
  const bool all = test.contexts.empty();
  if (all && !scoped) return contexts;
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(test.contexts, [&](const auto& one) { return one.text == name; });
  };
  contexts.timers = has("timer");
  contexts.ipis = has("ipi");
  contexts.devices = has("device");
  for (unsigned cpu = 0; cpu < test.cpus; ++cpu)
    if (!all && !has(fmt::format("cpu{}", cpu))) contexts.cpus &= ~(1u << cpu);
  return contexts;
}

void add_left_out_contexts(const vm::Contexts& contexts, unsigned cpus, std::vector<Caveat>& caveats) {
  std::vector<std::string> all;
  const auto add = [&](bool left_out, std::string what) {
    if (left_out) all.push_back(std::move(what));
  };
  for (unsigned cpu = 0; cpu < cpus; ++cpu) add((contexts.cpus >> cpu & 1) == 0, fmt::format("CPU {}", cpu));
  add(!contexts.timers, "timer interrupts");
  add(!contexts.ipis, "interrupts between CPUs");
  add(!contexts.devices, "device interrupts");
  if (!all.empty())
    caveats.push_back(
        {Caveat::Kind::Contexts, fmt::format("other moments for {} (contexts)", fmt::join(all, ", "))});
  if (contexts.timers)
    caveats.push_back(
        {Caveat::Kind::Contexts, fmt::format("timers of a CPU that come early more than {} times",
                                             vm::KernelMachineOptions().early_timers)});
}

std::string where_scope_fails(const vm::KernelTest& test, const SymbolTable& symbols) {
  for (const vm::KernelTest::Entry& one : test.scope)
    if (!vm::find_scope(symbols, std::span(&one.text, 1)).ok())
      return fmt::format("{}:{}", test.file, one.line);
  return "--scope";
}

// What to change in the file, if all executions end so.
std::string input_trouble(const vm::KernelTest& test, const Outcome& outcome) {
  const std::string check = fmt::format("{}:{}: the check `{}`", test.file, test.check.line, test.check.text);
  if (const auto* fault = std::get_if<Faulted>(&outcome))
    for (const int status : {126, 127})
      if (fault->what == vm::KernelMachine::check_failed(status))
        return fmt::format(
            "{} cannot be run in the guest: its shell ends with status {}; give the program with "
            "files = [\"HOST:GUEST\"]",
            check, status);
  const auto* limit = std::get_if<LimitReached>(&outcome);
  if (limit == nullptr) return {};
  if (limit->limit == LimitReached::Limit::Notes)
    return fmt::format(
        "{}: an execution may note {} bytes (slalom_note), and this one notes more; note less, or only where "
        "it "
        "matters",
        test.file, human_number(vm::KernelMachine::kMostNoteBytes));
  if (limit->enabled.empty())
    return fmt::format(
        "{} does not end: not within {} instructions, nor {} seconds of waiting; let it end, or "
        "set check = ... in [limits] to more",
        check, human_number(test.limits.check), vm::longest_wait(test.limits.check) / 1'000'000'000);
  std::string lines;
  for (unsigned flow = 0; flow < test.flows.size(); ++flow)
    if (std::ranges::find(limit->enabled, vm::KernelMachine::cpu_agent(flow)) != limit->enabled.end())
      lines += fmt::format(
          "{}{}:{}: {} does not end: not within {} instructions of all flows; let it end, or "
          "set execution = ... in [limits] to more",
          lines.empty() ? "" : "\n", test.file, test.flows[flow].line, test.flows[flow].name,
          human_number(limit->steps));
  return lines;
}

// A content without a machine is not yet a capsule's.
Result<OpenKernelTest> make_kernel_target(const Content& content) {
  const std::string &origin = content.origin, &expected_machine = content.machine;
  if (content.version != vm::kMachineVersion)
    return error(
        "{}: the capsule was made with version {} of slalom's virtual machine, and this is version {}, which "
        "boots another way, so that the schedule would lead elsewhere; explore {} again",
        origin, content.version, vm::kMachineVersion, origin);
  TRY_ASSIGN(const vm::KernelTest test, vm::parse_kernel_test(content.text, origin));
  TRY_ASSIGN(const std::vector<std::string> wanted, scope_of(test, content.scope));
  const bool shows = is_terminal(STDERR_FILENO);
  vm::PrepareOptions options;
  options.stop = interrupted;
  if (shows)
    options.progress = [](const std::string& line) {
      std::cerr << "\r\033[K  " << fit(printable(line), terminal_width(STDERR_FILENO) - 3) << std::flush;
    };
  Result<vm::PreparedTest> prepared = vm::prepare(test, options);
  if (shows) std::cerr << "\r\033[K" << std::flush;
  if (!prepared.ok()) return prepared.error();
  if (!expected_machine.empty() && expected_machine != prepared->content)
    return error(
        "{}: the kernel, its modules or its set-up are not those that the capsule was made with: bring these "
        "back, or explore again",
        origin);
  std::vector<std::string> flows;
  for (const vm::KernelTest::Flow& flow : test.flows) flows.push_back(flow.name);
  std::shared_ptr<const vm::GuestKernel> kernel;
  if (Result<vm::GuestKernel> known = vm::load_guest_kernel(prepared->machine.kernel); known.ok())
    kernel = std::make_shared<vm::GuestKernel>(*std::move(known));
  auto names = std::make_shared<vm::KernelNames>(
      kernel != nullptr ? vm::with_loaded_modules(*kernel, *prepared->machine.pc) : SymbolTable(), flows,
      test.cpus);
  OpenKernelTest opened;
  opened.folder = test.directory();
  opened.kernel = kernel;
  if (kernel != nullptr) {
    const std::string& given = test.debug_info.text;
    Result<vm::GuestLines> lines =
        vm::GuestLines::open(*kernel,
                             {.vmlinux = given.empty() ? std::filesystem::path() : test.directory() / given,
                              .modules = prepared->modules,
                              .folder = test.directory()},
                             *prepared->machine.pc);
    if (!lines.ok()) return error("{}:{}: {}", test.file, test.debug_info.line, lines.error().message);
    opened.debug_files = lines->files();
    names->set_lines(*std::move(lines));
  }
  vm::CpuMemory memory(prepared->machine.pc->cpu(0));
  names->read_per_cpu(memory, test.cpus);
  vm::KernelMachineOptions machine{.flows = static_cast<unsigned>(test.flows.size()),
                                   .programs = prepared->images,
                                   .has_check = !test.check.text.empty(),
                                   .check_limit = test.limits.check,
                                   .parts = prepared->parts,
                                   .guest = std::move(kernel),
                                   .contexts = contexts_of(test, !wanted.empty())};
  Result<vm::Scope> scope = vm::find_scope(names->symbols(), wanted);
  if (!scope.ok()) return error("{}: {}", where_scope_fails(test, names->symbols()), scope.error().message);
  machine.scope = *std::move(scope);
  if (wanted.empty() && !test.scheduler) machine.no_choices = vm::scheduling_code(names->symbols());
  machine.interruptible = vm::module_code(names->symbols());
  Target& target = opened.target;
  std::vector<CallProgram> calls;
  for (unsigned cpu = 0; cpu < test.flows.size(); ++cpu) {
    if (test.flows[cpu].kind != vm::KernelTest::Flow::Kind::Calls) {
      target.not_compared = {fmt::format("results with serial orders ({} is a program)", flows[cpu])};
      continue;
    }
    calls.push_back(test.flows[cpu].calls);
    names->set_calls(cpu, test.flows[cpu].calls);
  }
  const std::optional<uint64_t> entry = names->symbols().address_of("entry_SYSCALL_64");
  if (!entry) target.not_compared = {"results with serial orders (the kernel's symbols are not known)"};
  std::shared_ptr<vm::SerialOrders> serial;
  if (calls.size() == test.flows.size() && entry) {
    serial = std::make_shared<vm::SerialOrders>(std::move(calls), flows);
    machine.judge = [serial](const auto& results) { return serial->judge(results); };
    machine.stays = [serial] { return serial->complete() ? &serial->stays() : nullptr; };
  }
  opened.names = names;
  auto stable = std::make_shared<Stable>(std::move(prepared->machine), std::move(machine), std::move(names));
  if (serial != nullptr) {
    TRY_ASSIGN(std::unique_ptr<vm::KernelMachine> one, stable->take());
    serial->find(*one, Place{*entry}, test.limits.execution, interrupted);
    if (serial->complete()) target.serial_orders = serial->orders();
    target.not_compared = serial->not_compared();
    stable->give_back(std::move(one));
  }
  opened.make_kernel_machine = [stable] { return stable->take(); };
  target.id = make_target(
      "kernel", test.name,
      to_text(
          {.origin = origin, .machine = prepared->content, .scope = content.scope, .text = content.text}));
  target.make_machine = [stable](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
    TRY_ASSIGN(std::unique_ptr<vm::KernelMachine> one, stable->take());
    one->recognise({.locks = use.locks, .memory = use.memory});
    auto give_back = [stable](std::unique_ptr<vm::KernelMachine> done) {
      stable->give_back(std::move(done));
    };
    return std::unique_ptr<Machine>(
        std::make_unique<Borrowed>(std::move(one), std::move(give_back), &stable->figures, use.checkpoints));
  };
  for (const vm::KernelThread& thread : prepared->threads)
    if (thread.where == vm::KernelThread::Where::Free) target.unpinned_threads.push_back(thread.name);
  target.statistics = [stable] { return stable->figures.take(); };
  const unsigned flow_count = static_cast<unsigned>(test.flows.size());
  target.stress = [stable, flow_count, most = test.limits.execution](
                      uint64_t runs, uint64_t seed, const std::string& list) -> Result<Target::Stress> {
    TRY_ASSIGN(const Needs needs, needs_of(list));
    TRY_ASSIGN(std::unique_ptr<vm::KernelMachine> machine, stable->take());
    machine->recognise({.locks = needs.locks, .memory = needs.memory});
    TRY_ASSIGN(const std::unique_ptr<DetectorSet> detectors, select_detectors(machine->names(), list));
    Target::Stress all;
    for (; all.runs < runs; ++all.runs) {
      Rng rng(seed, all.runs);
      const vm::KernelMachine::FreeRun how{
          .first = static_cast<unsigned>(rng.below(flow_count)),
          .instructions = 1 + static_cast<uint32_t>(rng.below(vm::KernelMachine::FreeRun::kTurn))};
      detectors->reset();
      const Outcome outcome = machine->run_freely(how, most, *detectors);
      if (const auto* tool = std::get_if<ToolError>(&outcome)) return error("{}", tool->message);
      std::vector<Verdict> verdicts;
      detectors->harvest(verdicts);
      std::erase_if(verdicts, [](const Verdict& one) { return one.severity != Severity::Failure; });
      for (const Verdict& verdict : verdicts) ++all.titles[verdict.title];
      all.failures += !verdicts.empty() || std::holds_alternative<LimitReached>(outcome);
    }
    stable->give_back(std::move(machine));
    return all;
  };
  target.strategy = "pos";
  target.scope = fmt::format("{}", fmt::join(wanted, ", "));
  add_left_out_contexts(contexts_of(test, !wanted.empty()), test.cpus, target.standing);
  // Else wherever the flows are seen to communicate.
  target.choices = wanted.empty() ? "nowhere" : "everywhere";
  target.detectors = "kernel";
  target.all_detectors = "kernel,kernel-leak,kernel-race-simultaneous";
  target.max_steps = test.limits.execution;
  target.learns = wanted.empty();
  target.keeps_states = true;
  target.races_count = false;
  target.input_trouble = [test](const Outcome& outcome) { return input_trouble(test, outcome); };
  if (test.expect.given) target.expected = {test.expect.kinds, test.expect.titles};
  return opened;
}

}  // namespace

Result<Target> open_kernel_test(const std::string& path, const std::string& text,
                                const std::vector<std::string>& scope) {
  std::error_code ignored;
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  TRY_ASSIGN(OpenKernelTest opened,
             make_kernel_target({.origin = absolute.string(), .scope = scope, .text = text}));
  return std::move(opened.target);
}

Result<Target> open_kernel_test(const TargetId& id) {
  TRY_ASSIGN(OpenKernelTest opened, open_kernel_test_for_replay(id));
  return std::move(opened.target);
}

Result<OpenKernelTest> open_kernel_test_for_replay(const TargetId& id) {
  TRY_ASSIGN(const Content content, parse_content(id.content));
  return make_kernel_target(content);
}

Result<std::vector<std::string>> sources_to_compile(const TargetId& id) {
  TRY_ASSIGN(const Content content, parse_content(id.content));
  TRY_ASSIGN(const vm::KernelTest test, vm::parse_kernel_test(content.text, content.origin));
  std::vector<std::string> sources;
  for (const vm::KernelTest::Flow& flow : test.flows)
    if (flow.kind == vm::KernelTest::Flow::Kind::Source)
      sources.push_back(std::filesystem::absolute(flow.path).string());
  return sources;
}

Result<std::unique_ptr<KernelReplay>> replay_kernel(const Finding& finding, const ChoicePolicy& policy) {
  auto done = std::make_unique<KernelReplay>();
  TRY_ASSIGN(done->test, open_kernel_test_for_replay(finding.target));
  TRY_ASSIGN(done->machine, done->test.make_kernel_machine());
  done->machine->write_down(&done->course);
  Target target = done->test.target;
  target.make_machine = [&done](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
    auto give_back = [&done](std::unique_ptr<vm::KernelMachine> back) { done->machine = std::move(back); };
    return std::unique_ptr<Machine>(
        std::make_unique<Borrowed>(std::move(done->machine), std::move(give_back), nullptr, use.checkpoints));
  };
  TRY_ASSIGN(done->replay, replay_finding(target, finding, policy, nullptr));
  done->machine->write_down(nullptr);
  return done;
}

}  // namespace slalom
