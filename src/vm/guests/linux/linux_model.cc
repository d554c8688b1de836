#include "vm/guests/linux/linux_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/little_endian.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/calls/system_call_text.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMostInBulk = 4096;

uint8_t kinds(const GuestModelOptions& options) {
  unsigned kinds = LinuxFunctions::kTasks;
  if (options.locks) kinds |= LinuxFunctions::kLocks;
  if (options.memory) kinds |= LinuxFunctions::kMemory;
  if (options.pages) kinds |= LinuxFunctions::kPages;
  if (options.panics) kinds |= LinuxFunctions::kPanics;
  return static_cast<uint8_t>(kinds);
}

// Not memory: the last page, whose addresses are error codes, and the pointer to an allocation of size 0.
bool is_memory(uint64_t pointer) {
  return pointer > 16 && pointer < static_cast<uint64_t>(-4095);
}

}  // namespace

LinuxModel::LinuxModel(const GuestKernel& kernel, const GuestModelOptions& options, GuestSink& sink)
    : options_(options),
      sink_(sink),
      functions_(kernel.symbols, kinds(options)),
      tasks_(kernel),
      slabs_(kernel) {
  for (const uint64_t entry : options.functions) chosen_[entry] = true;
}

TapFilter LinuxModel::filter() const {
  TapFilter filter{
      .accesses = !options_.accesses.empty(), .calls = options_.backtraces, .stacks = linux_traits().stacks};
  if (!options_.accesses.empty()) {
    filter.first = ~uint64_t{0};
    filter.last = 0;
    for (const GuestModelOptions::Range& range : options_.accesses) {
      // An access that begins before the range may reach into it.
      filter.first = std::min(filter.first, range.first - std::min<uint64_t>(range.first, 15));
      filter.last = std::max(filter.last, range.last);
    }
  }
  return filter;
}

void LinuxModel::watch(Tap& tap) const {
  for (const uint64_t entry : functions_.entries()) tap.functions.add(entry);
  for (const uint64_t entry : options_.functions) tap.functions.add(entry);
}

std::optional<GuestModel::LockCall> LinuxModel::lock_call(const FunctionWatch::Frame& frame) const {
  const LinuxFunction* function = functions_.at(frame.function);
  using Role = LinuxFunction::Role;
  if (function == nullptr || function->object == LinuxFunction::kNone) return std::nullopt;
  const uint64_t lock = frame.arguments[function->object];
  if (function->role == Role::Release) return LockCall{lock, false};
  if (function->role == Role::Acquire || function->role == Role::AcquireIf0) return LockCall{lock, true};
  return std::nullopt;
}

std::unique_ptr<const GuestModel::Saved> LinuxModel::save() const {
  return std::make_unique<SavedState>(state_);
}

void LinuxModel::restore(const Saved* saved) {
  state_ = saved == nullptr ? State{} : static_cast<const SavedState*>(saved)->state;
}

void LinuxModel::tell(const Cpu& cpu, const Event& event, std::string_view function,
                      std::span<const uint64_t> arguments, uint64_t stack) {
  sink_.on_guest_event(cpu, {.event = event,
                             .cpu = cpu.id,
                             .task = state_.current[cpu.id],
                             .function = function,
                             .arguments = arguments,
                             .stack = stack == 0 ? cpu.regs.gpr[kRsp] : stack});
}

// Updates and returns the task that runs on the CPU. Emits an event if the task has changed, or its name
// (execve).
const GuestTask& LinuxModel::refresh(const Cpu& cpu, uint64_t step) {
  if (state_.current.size() <= cpu.id) state_.current.resize(cpu.id + 1);
  GuestTask& known = state_.current[cpu.id];
  const uint64_t now = tasks_.current(cpu);
  if (now == 0) return known;  // kernel memory is not mapped, so nothing has changed
  if (now == known.address && !options_.tasks)
    return known;  // the task may have a new name, but no event needs it
  GuestTask task = tasks_.read(cpu, now);
  if (task == known) return known;
  known = std::move(task);
  if (options_.tasks) {
    const std::string text = known.text();
    tell(cpu, {.step = Step{step},
               .agent = AgentId::initial(cpu.id),
               .op = OpKind::ThreadSwitch,
               .pc = Place{cpu.regs.gpr[kRip]},
               .object = ObjectId{known.address},
               .value = known.pid,
               .text = text});
  }
  return known;
}

std::vector<ShadowStacks::Frame> LinuxModel::backtrace(const Cpu& cpu) const {
  const uint64_t* stack = state_.stack_pointers.find(cpu.id);
  return stack == nullptr ? std::vector<ShadowStacks::Frame>() : state_.stacks.frames(*stack);
}

void LinuxModel::on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) {
  for (const Access& access : accesses) {
    if (access.op() == OpKind::Call || access.op() == OpKind::Return) {
      tell_accesses(cpu, first_step);  // earlier accesses have other callers
      if (access.ring == 0) {
        state_.stacks.on_transfer(access);
        state_.stack_pointers[cpu.id] = access.value;
      }
      continue;
    }
    const uint64_t first = access.address().raw, last = first + std::max<uint64_t>(access.size, 1) - 1;
    for (const GuestModelOptions::Range& range : options_.accesses)
      if (first <= range.last && last >= range.first) {
        chosen_accesses_.push_back(access);
        break;
      }
  }
  tell_accesses(cpu, first_step);
}

void LinuxModel::tell_accesses(const Cpu& cpu, uint64_t first_step) {
  if (chosen_accesses_.empty()) return;
  // A switch of tasks ends a batch, so one task made all accesses of this one.
  if (state_.current.size() <= cpu.id) state_.current.resize(cpu.id + 1);
  if (state_.current[cpu.id].address == 0) refresh(cpu, first_step);
  sink_.on_guest_accesses(cpu, chosen_accesses_, first_step, state_.current[cpu.id]);
  chosen_accesses_.clear();
}

void LinuxModel::on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  if (event.kind == CpuEvent::Kind::FunctionEntry) return entered(cpu, event, step);
  if (event.kind == CpuEvent::Kind::FunctionReturn) return returned(cpu, event, step);
  const GuestTask& task = refresh(cpu, step);
  Open& open = state_.open[task.address];
  const Event base{.step = Step{step}, .agent = AgentId::initial(cpu.id), .pc = Place{event.pc}};
  switch (event.kind) {
    case CpuEvent::Kind::SystemCall: {
      open = {.system_call = true, .number = event.number};
      if (!options_.system_calls) break;
      const std::string text = system_call_text(cpu, event.number, event.arguments);
      Event told = base;
      told.op = OpKind::SyscallEnter;
      told.value = static_cast<int64_t>(event.number);
      told.text = text;
      tell(cpu, told, {}, event.arguments);
      break;
    }
    case CpuEvent::Kind::SystemReturn:
      system_call_ends(cpu, event, static_cast<int64_t>(event.value), step);
      break;
    case CpuEvent::Kind::Interrupt:
    case CpuEvent::Kind::Exception: {
      open.vectors.push_back(static_cast<uint8_t>(event.number));
      if (!options_.interrupts) break;
      Event told = base;
      told.op = OpKind::IrqEnter;
      told.object = ObjectId{cpu.id};
      told.value = static_cast<int64_t>(event.number);
      tell(cpu, told);
      break;
    }
    case CpuEvent::Kind::InterruptReturn:
      interrupt_ends(cpu, event, step);
      break;
    case CpuEvent::Kind::AddressSpace:
    case CpuEvent::Kind::Stack:
    case CpuEvent::Kind::Halt:
    case CpuEvent::Kind::Pause:
    case CpuEvent::Kind::FunctionEntry:
    case CpuEvent::Kind::FunctionReturn:
      break;
  }
}

void LinuxModel::system_call_ends(const Cpu& cpu, const CpuEvent& event, int64_t result, uint64_t step) {
  Open& open = state_.open[state_.current[cpu.id].address];
  const bool begun = std::exchange(open.system_call, false);
  open.vectors.clear();
  if (!options_.system_calls) return;
  // Not seen to begin: it was entered before the model started to watch, or by the parent of this new task.
  const std::string name = begun ? system_call_title(open.number) : "(not seen to begin)";
  tell(cpu, {.step = Step{step},
             .agent = AgentId::initial(cpu.id),
             .op = OpKind::SyscallExit,
             .pc = Place{event.pc},
             .object = ObjectId{begun ? open.number : ~uint64_t{0}},
             .value = result,
             .text = name});
}

// Some system calls (execve, and those that a signal interrupts) return to their program by IRET.
void LinuxModel::interrupt_ends(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  Open& open = state_.open[state_.current[cpu.id].address];
  if (cpu.cpl == 3 && open.system_call && open.vectors.empty())
    return system_call_ends(cpu, event, static_cast<int64_t>(cpu.regs.gpr[kRax]), step);
  if (open.vectors.empty()) return;
  const uint8_t vector = open.vectors.back();
  open.vectors.pop_back();
  if (!options_.interrupts) return;
  tell(cpu, {.step = Step{step},
             .agent = AgentId::initial(cpu.id),
             .op = OpKind::IrqExit,
             .pc = Place{event.pc},
             .object = ObjectId{cpu.id},
             .value = vector});
}

void LinuxModel::lock(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function, OpKind op,
                      uint64_t step) {
  const uint64_t object = function.object == LinuxFunction::kNone ? state_.current[cpu.id].address
                                                                  : event.arguments[function.object];
  tell(cpu,
       {.step = Step{step},
        .agent = AgentId::initial(cpu.id),
        .op = op,
        .pc = Place{event.number},
        .object = ObjectId{object},
        .text = function.group},
       function.name, event.arguments, event.stack);
}

// Takes the cache from the function's argument. If there is none, finds it by the address of the memory.
std::optional<LinuxSlabs::Cache> LinuxModel::cache_of(const Cpu& cpu, const CpuEvent& event,
                                                      const LinuxFunction& function, uint64_t address) const {
  if (function.cache != LinuxFunction::kNone && event.arguments[function.cache] != 0)
    return slabs_.read(cpu, event.arguments[function.cache]);
  const std::optional<uint64_t> cache = slabs_.cache_of(cpu, address);
  return cache ? slabs_.read(cpu, *cache) : std::nullopt;
}

void LinuxModel::allocated(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function,
                           uint64_t address, uint64_t step) {
  if (!is_memory(address)) return;
  Block& block = state_.blocks[address];
  // One allocating function may call another. Then the inner one has already emitted the event.
  if (block.live && block.step >= event.since) return;
  const std::optional<LinuxSlabs::Cache> cache = cache_of(cpu, event, function, address);
  const int64_t size = function.size != LinuxFunction::kNone
                           ? static_cast<int64_t>(event.arguments[function.size])
                           : (cache ? cache->size : 0);
  block = {.size = size, .step = step, .live = true};
  const std::string text = cache ? cache->name : std::string(function.group);
  tell(cpu,
       {.step = Step{step},
        .agent = AgentId::initial(cpu.id),
        .op = OpKind::Alloc,
        .pc = Place{event.number},
        .object = ObjectId{address},
        .value = size,
        .text = text},
       function.name, event.arguments, event.stack);
}

void LinuxModel::freed(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function, uint64_t address,
                       uint64_t step) {
  if (!is_memory(address)) return;
  Block& block = state_.blocks[address];
  // In interrupts vfree() postpones the work and is called again later.
  if (!block.live && block.step != 0 && function.group == "vfree") return;
  const std::optional<LinuxSlabs::Cache> cache = cache_of(cpu, event, function, address);
  const int64_t size = block.live ? block.size : cache ? cache->size : 0;
  block = {.size = 0, .step = step, .live = false};
  const std::string text = cache ? cache->name : std::string(function.group);
  tell(cpu,
       {.step = Step{step},
        .agent = AgentId::initial(cpu.id),
        .op = OpKind::Free,
        .pc = Place{event.number},
        .object = ObjectId{address},
        .state = cache && cache->outlives_frees ? kOutlivesFree : 0,
        .value = size,
        .text = text},
       function.name, event.arguments, event.stack);
}

void LinuxModel::allocated_pages(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  constexpr uint64_t kLargestOrder = 20;
  const std::optional<uint64_t> address = slabs_.memory_of(cpu, event.value);
  if (!address || event.arguments[1] > kLargestOrder) return;
  tell(cpu,
       {.step = Step{step},
        .agent = AgentId::initial(cpu.id),
        .op = OpKind::Alloc,
        .pc = Place{event.number},
        .object = ObjectId{*address},
        .state = kOfPages,
        .value = static_cast<int64_t>(kPageSize << event.arguments[1]),
        .text = "pages"},
       {}, event.arguments, event.stack);
}

void LinuxModel::entered(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  refresh(cpu, step);
  const Event base{.step = Step{step}, .agent = AgentId::initial(cpu.id), .pc = Place{event.number}};
  if (chosen_.contains(event.pc)) {
    const std::string text = fmt::format("{:#x}", fmt::join(std::span(event.arguments).first(4), ", "));
    Event told = base;
    told.op = OpKind::Call;
    told.object = ObjectId{event.pc};
    told.value = static_cast<int64_t>(event.arguments[0]);
    told.text = text;
    tell(cpu, told, {}, event.arguments, event.stack);
  }
  const LinuxFunction* function = functions_.at(event.pc);
  if (function == nullptr) return;
  switch (function->role) {
    case LinuxFunction::Role::Release:
      return lock(cpu, event, *function, function->op, step);
    case LinuxFunction::Role::Downgrade:
      lock(cpu, event, *function, OpKind::WriteUnlock, step);
      return lock(cpu, event, *function, OpKind::ReadLock, step);
    case LinuxFunction::Role::Free:
      return freed(cpu, event, *function, event.arguments[function->object], step);
    case LinuxFunction::Role::FreeBulk:
      for (uint64_t i = 0; i < std::min(event.arguments[1], kMostInBulk); ++i)
        freed(cpu, event, *function, read_word(cpu, event.arguments[2] + 8 * i).value_or(0), step);
      return;
    case LinuxFunction::Role::Panic:
    case LinuxFunction::Role::Warn: {
      std::string text = read_string(cpu, event.arguments[0], 256);
      if (function->role == LinuxFunction::Role::Warn) text += fmt::format(":{}", event.arguments[1]);
      Event told = base;
      told.op = function->op;
      told.text = text;
      return tell(cpu, told, function->name, event.arguments, event.stack);
    }
    case LinuxFunction::Role::Acquire:
    case LinuxFunction::Role::AcquireIf:
    case LinuxFunction::Role::AcquireIf0:
    case LinuxFunction::Role::Alloc:
    case LinuxFunction::Role::AllocBulk:
    case LinuxFunction::Role::AllocPages:
    case LinuxFunction::Role::TaskSwitched:
      return;
  }
}

void LinuxModel::returned(const Cpu& cpu, const CpuEvent& event, uint64_t step) {
  refresh(cpu, step);
  if (const LinuxFunction* function = functions_.at(event.pc)) {
    switch (function->role) {
      case LinuxFunction::Role::AcquireIf:  // the result is an int or a bool
        if ((event.value & 0xff) != 0) lock(cpu, event, *function, function->op, step);
        break;
      case LinuxFunction::Role::AcquireIf0:
        if ((event.value & 0xffff'ffff) == 0) lock(cpu, event, *function, function->op, step);
        break;
      case LinuxFunction::Role::Acquire:
        lock(cpu, event, *function, function->op, step);
        break;
      case LinuxFunction::Role::Alloc:
        allocated(cpu, event, *function, event.value, step);
        break;
      case LinuxFunction::Role::AllocBulk:
        for (uint64_t i = 0; i < std::min(event.value & 0xffff'ffff, kMostInBulk); ++i)
          allocated(cpu, event, *function, read_word(cpu, event.arguments[3] + 8 * i).value_or(0), step);
        break;
      case LinuxFunction::Role::AllocPages:
        allocated_pages(cpu, event, step);
        break;
      case LinuxFunction::Role::Release:
      case LinuxFunction::Role::Downgrade:
      case LinuxFunction::Role::Free:
      case LinuxFunction::Role::FreeBulk:
      case LinuxFunction::Role::Panic:
      case LinuxFunction::Role::Warn:
      case LinuxFunction::Role::TaskSwitched:
        break;
    }
  }
  if (chosen_.contains(event.pc))
    tell(cpu,
         {.step = Step{step},
          .agent = AgentId::initial(cpu.id),
          .op = OpKind::Return,
          .pc = Place{event.number},
          .object = ObjectId{event.pc},
          .value = static_cast<int64_t>(event.value)},
         {}, event.arguments, event.stack);
}

MakeGuestModel make_linux_model(std::shared_ptr<const GuestKernel> kernel) {
  if (kernel == nullptr) return nullptr;
  return [kernel = std::move(kernel)](const GuestModelOptions& options, GuestSink& sink) {
    return std::make_unique<LinuxModel>(*kernel, options, sink);
  };
}

}  // namespace slalom::vm
