#include "detect/kernels/kernel_context.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/hash.h"
#include "trace/call_stacks.h"
#include "trace/lock_change.h"

namespace slalom {
namespace {

constexpr ObjectId kRcu{1};         // stands for RCU read sections, which have no lock object
constexpr size_t kMostFrames = 12;  // shown

}  // namespace

KernelContext::Where KernelContext::where(AgentId agent) const {
  if (agent == agent_) return {now_.path, stack_.locks};
  const Running* running = running_.find(agent.raw);
  if (running == nullptr) return {};
  if (running->region == now_.region) return {running->path, stack_.locks};
  const Stack* stack = stacks_.find(running->region);
  return stack == nullptr ? Where{} : Where{running->path, stack->locks};
}

void KernelContext::look_at(AgentId agent, uint64_t region) {
  if (agent_) {
    running_[agent_.raw] = now_;
    stacks_[now_.region] = stack_;
  }
  if (agent != agent_) now_ = running_[agent.raw];
  agent_ = agent;
  stack_ = stacks_[region];
  if (now_.region != region) now_ = {region, stack_.path};
}

KernelContext::Where KernelContext::on_transfer(AgentId agent, const Access& transfer) {
  const bool is_call = transfer.op() == OpKind::Call;
  const uint64_t pointer = transfer.value;
  // A return leaves the pointer above the slot of the return address.
  const uint64_t place = kernel_stack_of(is_call ? pointer : pointer - 8);
  if (agent != agent_ || place != now_.region) [[unlikely]]
    return transfer_elsewhere(agent, place, transfer);
  uint32_t path = now_.path;
  while (path != 0 && (calls_[path - 1].stack < pointer || (is_call && calls_[path - 1].stack == pointer)))
    path = calls_[path - 1].caller;
  if (is_call) {
    const Call call{path, transfer.pc(), Place{transfer.address().raw}, pointer};
    const uint64_t hash = fold(call.at.raw ^ path, pointer);
    Known& known = known_[hash % known_.size()];
    const auto tag = static_cast<uint32_t>(hash >> 32);
    if (known.path == 0 || known.tag != tag || calls_[known.path - 1] != call) [[unlikely]]
      return add_call(known, tag, call);
    path = known.path;
  }
  now_.path = stack_.path = path;
  return {path, stack_.locks};
}

[[gnu::noinline]] KernelContext::Where KernelContext::transfer_elsewhere(AgentId agent, uint64_t region,
                                                                         const Access& transfer) {
  look_at(agent, region);
  return on_transfer(agent, transfer);
}

[[gnu::noinline]] KernelContext::Where KernelContext::add_call(Known& known, uint32_t tag, const Call& call) {
  calls_.push_back(call);
  known = {static_cast<uint32_t>(calls_.size()), tag};
  now_.path = stack_.path = known.path;
  return {known.path, stack_.locks};
}

void KernelContext::on_event(const Event& event) {
  const LockChange change = lock_change(event.op, event.value);
  if (change == LockChange::None) return;
  if (event.agent != agent_) {
    const Running* running = running_.find(event.agent.raw);
    if (running == nullptr) return;
    look_at(event.agent, running->region);
  }
  const ObjectId lock = event.text.starts_with("rcu_read") ? kRcu : event.object;
  stack_.locks =
      change == LockChange::Take ? locks_.with(stack_.locks, lock) : locks_.without(stack_.locks, lock);
}

void KernelContext::clear() {
  calls_.clear();
  known_.fill({});
  agent_ = {};
  now_ = {};
  stack_ = {};
  stacks_.clear();
  running_.clear();
  locks_.clear();
}

std::vector<Place> KernelContext::frames(Place pc, uint32_t path) const {
  std::vector<Place> found = {pc};
  for (; path != 0; path = calls_[path - 1].caller) found.push_back(calls_[path - 1].at);
  return found;
}

std::vector<Place> KernelContext::functions(uint32_t path) const {
  std::vector<Place> found;
  for (; path != 0; path = calls_[path - 1].caller) found.push_back(calls_[path - 1].function);
  return found;
}

std::string KernelContext::stack_text(Place pc, uint32_t path, const Names& names) const {
  std::vector<std::string> shown;
  std::string before;
  for (const Place place : frames(pc, path)) {
    std::string name = names.place(place);
    const std::string function = function_name(name);
    // The entry code is the same for all calls.
    if (function.starts_with("entry_SYSCALL") || function.starts_with("do_syscall_64") ||
        shown.size() == kMostFrames)
      break;
    if (function == before) continue;  // a call, and the place behind it
    before = function;
    shown.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(shown, " <- "));
}

std::string KernelContext::locks_text(uint32_t locks, const Names& names) const {
  std::vector<std::string> shown;
  for (const ObjectId lock : locks_.list(locks)) {
    std::string name = lock == kRcu ? "RCU" : names.object(lock);
    if (std::ranges::find(shown, name) == shown.end()) shown.push_back(std::move(name));
  }
  return shown.empty() ? "no lock" : fmt::format("{}", fmt::join(shown, ", "));
}

std::string function_name(const std::string& place) {
  const std::string name = place.substr(0, place.find("+0x"));
  return name.substr(0, std::max<size_t>(1, name.find('.', 1)));
}

bool begins_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace slalom
