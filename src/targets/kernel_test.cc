#include "targets/kernel_test.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "detect/detector_set.h"
#include "report/core/summary.h"
#include "targets/kernel_content.h"
#include "targets/machine_pool.h"
#include "targets/serial_search.h"
#include "vm/control/kernel_machine.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/calls/call_facts.h"
#include "vm/guests/linux/guest_lines.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/linux_model.h"
#include "vm/guests/linux/linux_scope.h"
#include "vm/guests/linux/linux_traits.h"
#include "vm/scenario/kernel_names.h"
#include "vm/scenario/prepare.h"
#include "vm/scenario/serial_orders.h"

namespace slalom {
namespace {

// Returns the scopes of a test's search: its own, or those of the command line.
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

// Returns the usual detectors and those that the test needs besides them.
Result<std::string> detectors_of(const vm::KernelTest& test) {
  std::string list = "kernel";
  for (const vm::KernelTest::Entry& one : test.detectors) {
    const auto known = needs_of(one.text);
    if (!known.ok()) return error("{}:{}: {}", test.file, one.line, known.error().message);
    if (one.text != "kernel") list += "," + one.text;
  }
  return list;
}

// With a scope, interrupts are explored only on request.
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

// Returns where the kernel has done everything for a system call and returns to the program.
std::optional<Place> end_of_calls(const SymbolTable& symbols) {
  for (const char* name :
       {"entry_SYSRETQ_unsafe_stack", "syscall_return_via_sysret", "syscall_exit_to_user_mode"})
    if (const std::optional<uint64_t> address = symbols.address_of(name)) return Place{*address};
  return std::nullopt;
}

// Returns the first prepared call after which results may depend on time: a timer, or a socket's timeout.
std::string prepared_timer(const vm::KernelTest& test) {
  for (size_t list = 0; list <= test.flows.size(); ++list) {
    const CallProgram* program = test.prepared(list);
    size_t call = 0;
    for (size_t i = 0; program != nullptr && i < program->steps.size(); ++i) {
      const CallStep& step = program->steps[i];
      if (step.kind != CallStep::Kind::Call) continue;
      if (vm::depends_on_time(*program, step)) return program->sources[call].text;
      ++call;
    }
  }
  return {};
}

std::string where_scope_fails(const vm::KernelTest& test, const SymbolTable& symbols) {
  for (const vm::KernelTest::Entry& one : test.scope)
    if (!vm::find_scope(symbols, std::span(&one.text, 1)).ok())
      return fmt::format("{}:{}", test.file, one.line);
  return "--scope";
}

// Returns advice on what to change in the file if all executions end this way.
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

// A content without a machine comes from a test file, not from a capsule.
Result<OpenKernelTest> make_kernel_target(const KernelContent& content, const OpenOptions& options) {
  const std::string &origin = content.origin, &expected_machine = content.machine;
  if (content.version != vm::kMachineVersion)
    return error(
        "{}: the capsule was made with version {} of slalom's virtual machine, and this is version {}, which "
        "boots another way, so that the schedule would lead elsewhere; explore {} again",
        origin, content.version, vm::kMachineVersion, origin);
  TRY_ASSIGN(vm::KernelTest test, vm::parse_kernel_test(content.text, origin));
  vm::use_kernel(test, content.kernel, content.module_directory);
  TRY_ASSIGN(const std::string detectors, detectors_of(test));
  TRY_ASSIGN(const std::vector<std::string> wanted, scope_of(test, content.scope));
  Result<vm::PreparedTest> made = vm::prepare(test, {.progress = options.progress, .stop = options.stop});
  options.progress({});
  TRY_ASSIGN(vm::PreparedTest prepared, std::move(made));
  if (!expected_machine.empty() && expected_machine != prepared.content &&
      expected_machine != prepared.former_content)
    return error(
        "{}: the kernel, its modules or its set-up are not those that the capsule was made with: bring these "
        "back, or explore again",
        origin);
  std::vector<std::string> flows;
  for (const vm::KernelTest::Flow& flow : test.flows) flows.push_back(flow.name);
  std::shared_ptr<const vm::GuestKernel> kernel;
  if (Result<vm::GuestKernel> known = vm::load_guest_kernel(prepared.machine.kernel); known.ok())
    kernel = std::make_shared<vm::GuestKernel>(*std::move(known));
  auto names = std::make_shared<vm::KernelNames>(
      kernel != nullptr ? vm::with_loaded_modules(*kernel, *prepared.machine.pc) : SymbolTable(), flows,
      test.cpus);
  OpenKernelTest opened;
  opened.folder = test.directory();
  opened.kernel = kernel;
  if (kernel != nullptr) {
    const std::string& given = test.debug_info.text;
    Result<vm::GuestLines> lines =
        vm::GuestLines::open(*kernel,
                             {.vmlinux = given.empty() ? std::filesystem::path() : test.directory() / given,
                              .modules = prepared.modules,
                              .folder = test.directory()},
                             *prepared.machine.pc);
    if (!lines.ok()) return error("{}:{}: {}", test.file, test.debug_info.line, lines.error().message);
    opened.debug_files = lines->files();
    names->set_lines(*std::move(lines));
  }
  vm::CpuMemory memory(prepared.machine.pc->cpu(0));
  names->read_per_cpu(memory, test.cpus);
  vm::KernelMachineOptions machine{.flows = static_cast<unsigned>(test.flows.size()),
                                   .has_check = !test.check.text.empty(),
                                   .check_limit = test.limits.check,
                                   .parts = prepared.parts,
                                   .guest = vm::linux_traits(),
                                   .make_model = vm::make_linux_model(std::move(kernel)),
                                   .contexts = contexts_of(test, !wanted.empty())};
  Result<vm::Scope> scope = vm::find_scope(names->symbols(), wanted);
  if (!scope.ok()) return error("{}: {}", where_scope_fails(test, names->symbols()), scope.error().message);
  machine.scope = *std::move(scope);
  if (wanted.empty() && !test.scheduler) machine.no_choices = vm::scheduling_code(names->symbols());
  machine.interruptible = vm::module_code(names->symbols());
  Target& target = opened.target;
  ComparedResults compared;  // without serial orders
  std::vector<CallProgram> calls;
  for (unsigned cpu = 0; cpu < test.flows.size(); ++cpu) {
    if (test.flows[cpu].kind != vm::KernelTest::Flow::Kind::Calls) {
      compared.not_compared = {fmt::format("results with serial orders ({} is a program)", flows[cpu])};
      continue;
    }
    calls.push_back(test.flows[cpu].calls);
    names->set_calls(cpu, test.flows[cpu].calls);
  }
  const std::optional<uint64_t> entry = names->symbols().address_of("entry_SYSCALL_64");
  if (!entry) compared.not_compared = {"results with serial orders (the kernel's symbols are not known)"};
  TestInput input{.programs = prepared.images};
  const std::string timer = prepared_timer(test);
  if (!timer.empty())
    compared.not_compared = {fmt::format("results with serial orders ({} depends on time)", timer)};
  std::shared_ptr<vm::SerialOrders> serial;
  if (calls.size() == test.flows.size() && entry && timer.empty()) {
    serial = std::make_shared<vm::SerialOrders>(std::move(calls), flows);
    input.judge = [serial](const auto& results) { return serial->judge(results); };
    input.leftovers = [serial] { return serial->complete() ? &serial->leftovers() : nullptr; };
  }
  machine.test = std::make_shared<const TestInput>(std::move(input));
  opened.names = names;
  auto pool =
      std::make_shared<MachinePool>(std::move(prepared.machine), std::move(machine), std::move(names));
  if (serial != nullptr)
    target.preliminary = std::make_shared<SerialSearch>(
        pool, serial,
        SerialSearch::Options{.entry = Place{*entry},
                              .exit = end_of_calls(opened.names->symbols()),
                              .flows = static_cast<unsigned>(test.flows.size()),
                              .cpus = test.cpus,
                              .first_ipi = vm::linux_traits().first_ipi,
                              .max_steps = test.limits.execution});
  target.reports.compared = [serial, compared]() -> ComparedResults {
    if (serial == nullptr) return compared;
    return {serial->complete() ? serial->orders() : 0, serial->not_compared()};
  };
  opened.make_kernel_machine = [pool] { return pool->take(); };
  target.id = make_target("kernel", test.name,
                          to_text({.origin = origin,
                                   .machine = prepared.content,
                                   .kernel = prepared.kernel.empty() ? content.kernel : prepared.kernel,
                                   .module_directory = content.module_directory,
                                   .scope = content.scope,
                                   .text = content.text}));
  target.make_machine = [pool](const MachineUse& use) { return borrow(pool, use); };
  for (const vm::KernelThread& thread : prepared.threads)
    if (thread.where == vm::KernelThread::Where::Free) target.limits.unpinned_threads.push_back(thread.name);
  target.reports.statistics = [pool] { return pool->figures.take(); };
  target.traits.free_turn = vm::KernelMachine::kFreeTurn;
  target.words.communicate = "the flows";
  target.defaults.strategy = "pos";
  target.limits.scope = fmt::format("{}", fmt::join(wanted, ", "));
  add_left_out_contexts(contexts_of(test, !wanted.empty()), test.cpus, target.limits.standing);
  // Without a scope, the search switches where learning sees the flows communicate.
  target.defaults.choices = wanted.empty() ? "nowhere" : "everywhere";
  target.defaults.detectors = detectors;
  target.defaults.replay_detectors = "kernel,kernel-leak,kernel-race-simultaneous";
  target.defaults.max_steps = test.limits.execution;
  target.traits.learns = wanted.empty();
  target.traits.keeps_states = true;
  target.defaults.races_count = false;
  target.reports.input_trouble = [test](const Outcome& outcome) { return input_trouble(test, outcome); };
  if (test.expect.given) target.expected = {test.expect.kinds, test.expect.titles};
  return opened;
}

}  // namespace

Result<Target> open_kernel_test(const std::string& path, const std::string& text,
                                const std::vector<std::string>& scope, const OpenOptions& options) {
  std::error_code ignored;
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  TRY_ASSIGN(OpenKernelTest opened, make_kernel_target({.origin = absolute.string(),
                                                        .kernel = options.kernel,
                                                        .module_directory = options.module_directory,
                                                        .scope = scope,
                                                        .text = text},
                                                       options));
  return std::move(opened.target);
}

Result<Target> open_kernel_test(const TargetId& id, const OpenOptions& options) {
  TRY_ASSIGN(OpenKernelTest opened, open_kernel_test_for_replay(id, options));
  return std::move(opened.target);
}

Result<OpenKernelTest> open_kernel_test_for_replay(const TargetId& id, const OpenOptions& options) {
  TRY_ASSIGN(const KernelContent content, parse_kernel_content(id.content));
  return make_kernel_target(content, options);
}

Result<std::vector<std::string>> sources_to_compile(const TargetId& id) {
  TRY_ASSIGN(const KernelContent content, parse_kernel_content(id.content));
  TRY_ASSIGN(const vm::KernelTest test, vm::parse_kernel_test(content.text, content.origin));
  std::vector<std::string> sources;
  for (const vm::KernelTest::Flow& flow : test.flows)
    if (flow.kind == vm::KernelTest::Flow::Kind::Source)
      sources.push_back(std::filesystem::absolute(flow.path).string());
  return sources;
}

Result<std::unique_ptr<KernelReplay>> replay_kernel(const Finding& finding, const ChoicePolicy& policy,
                                                    const OpenOptions& options) {
  auto done = std::make_unique<KernelReplay>();
  TRY_ASSIGN(done->test, open_kernel_test_for_replay(finding.target, options));
  TRY_ASSIGN(done->machine, done->test.make_kernel_machine());
  done->machine->record_into(&done->course);
  Target target = done->test.target;
  target.make_machine = [&done](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
    auto give_back = [&done](std::unique_ptr<vm::KernelMachine> back) { done->machine = std::move(back); };
    return Result<std::unique_ptr<Machine>>(
        borrow(std::move(done->machine), std::move(give_back), nullptr, use.checkpoints));
  };
  TRY(run_preliminary(target, options.stop));
  TRY_ASSIGN(done->replay, replay_finding(target, finding, policy, nullptr));
  done->machine->record_into(nullptr);
  return done;
}

}  // namespace slalom
