#include "cli/kernel/boot_trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <utility>

#include "base/text/printable.h"

namespace slalom {
namespace {

constexpr size_t kMostFunctions = 20'000;  // functions that one pattern may match
constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr uint64_t kModules = 0xffff'ffff'c000'0000;  // where Linux loads modules

constexpr std::string_view kKnown =
    "syscalls, locks, alloc, irq, sched, panic, all, stacks, calls:NAME, calls:PREFIX*, access:SYMBOL, "
    "access:0xADDRESS+SIZE";

std::optional<uint64_t> parse_number(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  uint64_t number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || trouble != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<std::unique_ptr<BootTrace>> BootTrace::make(const BootTraceOptions& options,
                                                   const std::string& kernel) {
  std::unique_ptr<BootTrace> trace(new BootTrace(options));
  for (const std::string& filter : options.filters) TRY(trace->parse(filter));
  trace->kernel_name_ = kernel;
  TRY_ASSIGN(trace->kernel_, vm::load_guest_kernel(kernel));
  if (!options.to.empty()) {
    trace->file_.open(options.to);
    if (!trace->file_)
      return error("cannot write {}: choose another file for --trace-to", options.to.string());
  }
  return trace;
}

BootTrace::~BootTrace() {
  if (attached_ != nullptr) attached_->attach(nullptr);
}

Result<void> BootTrace::parse(const std::string& filter) {
  vm::GuestModelOptions& on = model_options_;
  const bool all = filter == "all";
  if (filter.starts_with("calls:") && filter.size() > 6) {
    call_patterns_.push_back(filter.substr(6));
  } else if (filter.starts_with("access:") && filter.size() > 7) {
    ranges_.push_back(filter.substr(7));
  } else if (filter == "stacks") {
    on.backtraces = true;
  } else if (all || filter == "syscalls" || filter == "locks" || filter == "alloc" || filter == "irq" ||
             filter == "sched" || filter == "panic") {
    on.system_calls |= all || filter == "syscalls";
    on.locks |= all || filter == "locks";
    on.memory |= all || filter == "alloc";
    on.interrupts |= all || filter == "irq";
    shows_switches_ |= all || filter == "sched";
    on.panics |= all || filter == "panic";
  } else {
    return error("--trace does not know \"{}\"; it knows {}", filter, kKnown);
  }
  on.tasks = true;  // every line names its task
  return {};
}

Result<void> BootTrace::choose() {
  for (const std::string& pattern : call_patterns_) {
    const size_t before = model_options_.functions.size();
    for (const Symbol& symbol : symbols_.symbols())
      if (symbol.is_code() && !symbol.is_offset &&
          (fnmatch(pattern.c_str(), symbol.name.c_str(), 0) == 0 ||
           fnmatch(pattern.c_str(), symbol.full_name().c_str(), 0) == 0))
        model_options_.functions.push_back(symbol.address);
    const size_t count = model_options_.functions.size() - before;
    if (count == 0)
      return error("--trace calls:{}: this kernel has no such function{}", pattern,
                   options_.after.empty() ? "; if it is a module's, begin later with --trace-after" : "");
    if (count > kMostFunctions)
      return error("--trace calls:{} would be {} functions; choose fewer with a longer prefix", pattern,
                   count);
  }
  for (const std::string& text : ranges_) {
    const size_t plus = text.find('+');
    const std::string name = text.substr(0, plus);
    std::optional<uint64_t> first = name.starts_with("0x") ? parse_number(name) : std::nullopt;
    uint64_t size = 0;
    if (!first) {
      const std::vector<const Symbol*> found = symbols_.named(name);
      if (found.empty())
        return error("--trace access:{}: this kernel has no symbol {}; an address is as 0xffffffff81000000+8",
                     text, name);
      if (found[0]->is_offset)
        return error(
            "--trace access:{}: every CPU has its own {}; give the address of one, as 0xADDRESS+SIZE", text,
            name);
      first = found[0]->address;
      size = std::max<uint64_t>(found[0]->size, 1);
    }
    if (plus != std::string::npos) size = parse_number(text.substr(plus + 1)).value_or(0);
    if (size == 0 || size > kMostBytes || *first + size - 1 < *first)
      return error("--trace access:{}: say how many bytes, as access:0xffffffff81000000+8", text);
    model_options_.accesses.push_back({*first, *first + size - 1});
  }
  return {};
}

Result<void> BootTrace::on_console(const std::string& text, vm::Pc& pc) {
  if (!waits()) return {};
  if (options_.after.empty()) return begin(pc);
  seen_ += text;
  const bool found = seen_.find(options_.after) != std::string::npos;
  // Keeps only text that may be the start of `after`.
  if (seen_.size() > options_.after.size()) seen_.erase(0, seen_.size() - options_.after.size());
  if (!found) return {};
  return begin(pc);
}

Result<void> BootTrace::begin(vm::Pc& pc) {
  symbols_ = vm::with_loaded_modules(kernel_, pc);
  TRY_ASSIGN(vm::GuestLines lines, vm::GuestLines::open(kernel_, {.vmlinux = options_.debug_info}, pc));
  names_.set_lines(std::move(lines));
  TRY(choose());
  if (!options_.save.empty()) {
    const TraceInfo info{.kind = "boot",
                         .target = kernel_name_,
                         .recorded = {.locks = model_options_.locks, .memory = model_options_.memory},
                         .races_count = false};
    TRY_ASSIGN(writer_, TraceWriter::create(options_.save, info, names_));
  }
  model_ = std::make_unique<vm::LinuxModel>(kernel_, model_options_, *this);
  tap_ = std::make_unique<vm::Tap>(*model_, model_->filter());
  model_->watch(*tap_);
  std::string missing;
  for (const std::string& group : model_->missing()) missing += (missing.empty() ? "" : ", ") + group;
  if (!missing.empty() && (model_options_.locks || model_options_.memory))
    print("not seen, since this kernel has no function for it: " + missing);
  if (!model_->knows_tasks()) print("tasks are not known: this kernel has no types (BTF)");
  pc.attach(tap_.get());
  attached_ = &pc;
  return {};
}

void BootTrace::between(vm::Pc& pc) {
  if (!std::exchange(nameless_, false)) return;
  symbols_ = vm::with_loaded_modules(kernel_, pc);
}

Result<void> BootTrace::end() {
  if (attached_ != nullptr) std::exchange(attached_, nullptr)->attach(nullptr);
  if (waits())
    return error(
        "\"{}\" never appeared on the console, so nothing was traced; look at what --trace-after says",
        options_.after);
  if (file_.is_open() && !file_.flush())
    return error("cannot write {}: is the disk full?", options_.to.string());
  if (writer_ == nullptr) return {};
  // Abandoned, because the guest itself reached no limit.
  writer_->on_end(Abandoned{.why = "the recording ended"});
  return writer_->close();
}

void BootTrace::print(const std::string& line) {
  std::ostream& out = file_.is_open() ? file_ : std::cerr;
  out << printable(line) << '\n';  // function names of a kernel may contain any characters
}

void BootTrace::print_callers(const std::vector<vm::ShadowStacks::Frame>& callers) {
  for (const vm::ShadowStacks::Frame& frame : callers)
    print(fmt::format("{:>46} {}", "<-", lines_.place(frame.call)));
}

void BootTrace::note_if_nameless(uint64_t address) {
  nameless_ |= address >= kModules && symbols_.at(address) == nullptr;
}

void BootTrace::on_guest_event(const vm::Cpu&, const vm::GuestEvent& event) {
  const Event& what = event.event;
  if (writer_ != nullptr) writer_->on_event(what);
  note_if_nameless(what.pc.raw);
  const std::string line = lines_.event(what);
  if (what.op == OpKind::ThreadSwitch && !shows_switches_) return;
  print(line);
  if (what.op != OpKind::ThreadSwitch && what.op != OpKind::SyscallEnter && what.op != OpKind::SyscallExit)
    print_callers(model_->backtrace(event.stack));
}

void BootTrace::on_guest_accesses(const vm::Cpu& cpu, std::span<const Access> accesses, uint64_t first_step,
                                  const vm::GuestTask&) {
  const AgentId agent = AgentId::initial(cpu.id);
  if (writer_ != nullptr) writer_->on_accesses(accesses, {.agent = agent, .first_step = Step{first_step}});
  for (const Access& access : accesses) {
    note_if_nameless(access.pc().raw);
    print(lines_.access(access, first_step + access.retired, agent));
    print_callers(model_->backtrace(cpu));
  }
}

}  // namespace slalom
