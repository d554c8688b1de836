#include "vm/control/flow_waits.h"

#include <algorithm>
#include <array>

#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

// After this much virtual time (in nanoseconds) with idle CPUs only, no CPU will wake up, unless a flow waits
// for a timer.
constexpr uint64_t kForever = 3'000'000'000;

}  // namespace

bool FlowWaits::for_ever() const {
  if (m_.pc.time() - m_.events.stacks().progress <= kForever) return false;
  for (unsigned cpu = 0; cpu < m_.options.flows; ++cpu)
    if (!m_.contexts.cpu(cpu).done && sleeps_for_a_time(cpu)) return false;
  return true;
}

// A flow that waits for a timer has the timer on its stack, with the function to call when it expires.
bool FlowWaits::sleeps_for_a_time(unsigned cpu) const {
  const FlowStacks::Stack& flow = m_.events.stacks().cpus[cpu];
  if (flow.sleeps == 0) return false;
  const Cpu& here = m_.pc.cpu(cpu);
  for (uint64_t at = flow.sleeps & ~uint64_t{7}; at < m_.options.guest.stacks.end_of(flow.base); at += 8) {
    const std::optional<uint64_t> value = read_word(here, at);
    if (!value) break;
    if (!m_.options.guest.code.has(*value)) continue;
    const std::string place = m_.names.place(Place{*value});
    const std::span<const std::string_view> timed = m_.options.guest.timed_waits;
    if (std::ranges::find(timed, place) != timed.end()) return true;
  }
  return false;
}

Deadlocked FlowWaits::deadlock() const {
  Deadlocked deadlock;
  for (unsigned cpu = 0; cpu < m_.options.flows; ++cpu)
    if (!m_.contexts.cpu(cpu).done) {
      Deadlocked::Waiting waiting{KernelContexts::cpu_agent(cpu), OpKind::None, {}, waits_at(cpu), {}};
      if (const std::optional<LockWait> wait = waits_for_lock(cpu)) {
        waiting.object = ObjectId{wait->lock};
        waiting.pc = wait->caller;
        waiting.held_by = m_.guest.holders(wait->lock);
        if (waiting.held_by.empty())
          if (const std::optional<unsigned> releasing = releases_lock(wait->lock))
            waiting.held_by = {KernelContexts::cpu_agent(*releasing)};
      }
      deadlock.waiting.push_back(std::move(waiting));
    }
  return deadlock;
}

// Returns the lock of the innermost call on the flow's waiting stack that takes a lock and has not returned.
std::optional<FlowWaits::LockWait> FlowWaits::waits_for_lock(unsigned cpu) const {
  const GuestModel* model = m_.guest.model();
  if (model == nullptr) return std::nullopt;
  const FlowStacks::Stack& flow = m_.events.stacks().cpus[cpu];
  const KernelStacks& stacks = m_.options.guest.stacks;
  const uint64_t pointer = m_.pc.cpu(cpu).regs.gpr[kRsp];
  const uint64_t stack = stacks.base_of(pointer);
  const bool here = stack == flow.base || !m_.contexts.cpu(cpu).interrupts.empty();
  const uint64_t top = here ? pointer : flow.sleeps;
  const uint64_t end = stacks.end_of(here ? stack : flow.base);
  const FunctionWatch::Open& open = m_.tap.functions.open();
  for (auto at = open.lower_bound(top); at != open.end() && at->first < end; ++at)
    for (const FunctionWatch::Frame& frame : at->second) {
      const std::optional<GuestModel::LockCall> call = model->lock_call(frame);
      if (call && call->acquires) return LockWait{call->lock, Place{frame.return_address}};
    }
  return std::nullopt;
}

// Returns the CPU that has begun to release the lock and was interrupted before it could. It still holds the
// lock.
std::optional<unsigned> FlowWaits::releases_lock(uint64_t lock) const {
  const GuestModel* model = m_.guest.model();
  for (const auto& [stack, frames] : m_.tap.functions.open())
    for (const FunctionWatch::Frame& frame : frames) {
      const std::optional<GuestModel::LockCall> call = model->lock_call(frame);
      if (!call || call->acquires || call->lock != lock) continue;
      for (unsigned cpu = 0; cpu < m_.options.flows; ++cpu)
        if (m_.options.guest.stacks.base_of(stack) == m_.events.stacks().cpus[cpu].base) return cpu;
    }
  return std::nullopt;
}

// A place without a name is taken for one in such a function.
bool FlowWaits::implements_waiting(Place place) const {
  const std::string name = m_.names.place(place);
  return name.starts_with("0x") ||
         std::ranges::any_of(m_.options.guest.waiting_functions,
                             [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Returns a place in the innermost function on the flow's stack that does not itself implement waiting. The
// flow sleeps, or an interrupt that has interrupted it does not end. Return addresses identify the functions,
// since nothing else is known of the stack.
Place FlowWaits::waits_at(unsigned cpu) const {
  const FlowStacks::Stack& flow = m_.events.stacks().cpus[cpu];
  const Cpu& here = m_.pc.cpu(cpu);
  Place found{here.regs.gpr[kRip]};
  const KernelStacks& stacks = m_.options.guest.stacks;
  const uint64_t stack = stacks.base_of(here.regs.gpr[kRsp]);
  const bool spins = stack == flow.base || !m_.contexts.cpu(cpu).interrupts.empty();
  if (flow.base == 0 || (spins && !implements_waiting(found))) return found;
  if (!spins && flow.sleeps == 0) return found;
  const uint64_t top = spins ? here.regs.gpr[kRsp] : flow.sleeps;
  const uint64_t end = stacks.end_of(spins ? stack : flow.base);
  for (uint64_t at = top & ~uint64_t{7}; at < end; at += 8) {
    const std::optional<uint64_t> value = read_word(here, at);
    if (!value) break;
    std::array<uint8_t, 1> before{};  // the opcode of a direct call, five bytes before the return address
    if (!m_.options.guest.code.has(*value) || !read_all(here, *value - 5, before) || before[0] != 0xe8)
      continue;
    found = Place{*value};
    if (!implements_waiting(found)) return found;
  }
  return found;
}

}  // namespace slalom::vm
