#include "process/names/stack_names.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace slalom {
namespace {

constexpr uint32_t kMostLooks = 1000;  // looks at stacks in an execution
constexpr int kMostWaits = 500;        // times that it waits for the threads to stop
constexpr auto kWait = std::chrono::microseconds(100);
constexpr uint64_t kLowestStack = 0x7f0000000000;  // the program and the heap of brk() are below
constexpr uint32_t kMostPointing = 6;              // frames of the program whose pointers are examined
constexpr size_t kRedZone = 128;                   // bytes in use below a stack pointer

const StackFrame* frame_of(const std::vector<StackFrame>& frames, uint64_t address) {
  const auto found =
      std::ranges::find_if(frames, [&](const StackFrame& frame) { return address < frame.cfa; });
  return found == frames.end() ? nullptr : &*found;
}

bool may_be_on_a_stack(uint64_t address) {
  return address >= kLowestStack && address < preload::kChannelObjects;
}

}  // namespace

void StackNames::touched(uint64_t address, uint32_t agent) {
  if (!may_be_on_a_stack(address)) return;
  const auto [known, added] = touched_.try_emplace(address, agent);
  if (!added && known->second != agent) known->second = preload::kNoAgent;
}

void StackNames::look(pid_t process, preload::Range channel, uint32_t agent, uint64_t address,
                      const std::vector<AgentId>& agents) {
  const std::map<uint64_t, uint32_t> wanted = std::exchange(touched_, {});
  const bool is_next = address != 0 && address < preload::kChannelObjects && names_.is_unnamed(address);
  if ((wanted.empty() && !is_next) || process <= 0 || ++looks_ > kMostLooks) return;
  if (process != process_) {
    process_ = process;
    stacks_ = std::make_unique<Stacks>(process);
    known_.clear();
  }
  const std::vector<Thread> all = threads(channel);
  const auto find_name = [&](uint64_t at, uint32_t by, bool is_past) {
    // The address is on the stack with the next lower stack pointer.
    const Thread* owner = nullptr;
    for (const Thread& thread : all)
      if (thread.stack - kRedZone <= at && (owner == nullptr || thread.stack > owner->stack)) owner = &thread;
    if (owner == nullptr || owner->agent >= agents.size()) return;
    const Known& known = frames(*owner);
    const StackFrame* frame = frame_of(known.frames, at);
    if (frame == nullptr) return;
    // An address that its owner has touched may have been in a frame that is gone. It was not if the same
    // frame existed at the look before.
    const StackFrame* before = is_past && owner->agent == by ? frame_of(known.before, at) : frame;
    if (before == nullptr && known.before.empty() && is_outermost(known.frames, *frame)) before = frame;
    if (before == nullptr || before->cfa != frame->cfa) return;
    names_.learn_local(at, *frame, *before, agents[owner->agent]);
  };
  for (const auto& [at, by] : wanted)
    if (by != preload::kNoAgent) find_name(at, by, true);
  if (!is_next) return;
  find_name(address, agent, false);
  for (const Thread& thread : all)
    if (thread.agent == agent) find_object(thread, address);
}

// Uses the innermost function of the program that has a pointer to the object. Functions inside it may be
// wrappers of the operation.
void StackNames::find_object(const Thread& thread, uint64_t address) {
  uint32_t looked_at = 0;
  for (const StackFrame& frame : frames(thread).frames) {
    if (!names_.is_user_code(frame.pc)) continue;
    if (++looked_at > kMostPointing) return;
    bool found = false;
    for (const PointerVariable& pointer : names_.pointers(frame)) {
      const std::optional<uint64_t> begin = pointer.in_memory ? word_at(pointer.number) : pointer.number;
      if (begin && *begin != 0 && *begin <= address)
        found = names_.learn_object(frame.pc, pointer.type, *begin, address, pointer.name) || found;
    }
    if (found) return;
  }
}

std::optional<uint64_t> StackNames::word_at(uint64_t address) const {
  uint64_t word = 0;
  iovec here{&word, sizeof word}, there{reinterpret_cast<void*>(address), sizeof word};
  return process_vm_readv(process_, &here, 1, &there, 1, 0) == sizeof word ? std::optional(word)
                                                                           : std::nullopt;
}

// Returns whether the frame is the outermost one in the program's own code. Such a frame lives as long as its
// thread.
bool StackNames::is_outermost(const std::vector<StackFrame>& frames, const StackFrame& frame) const {
  const auto user = std::find_if(frames.rbegin(), frames.rend(),
                                 [&](const StackFrame& one) { return names_.is_user_code(one.pc); });
  return user != frames.rend() && *user == frame;
}

// Repeats, because the thread that ran last reports its stop before it waits.
std::vector<StackNames::Thread> StackNames::threads(preload::Range channel) const {
  for (int i = 0; i < kMostWaits; ++i) {
    if (std::optional<std::vector<Thread>> all = try_threads(channel)) return *std::move(all);
    std::this_thread::sleep_for(kWait);
  }
  return {};
}

std::optional<std::vector<StackNames::Thread>> StackNames::try_threads(preload::Range channel) const {
  std::vector<Thread> all;
  std::error_code gone;
  for (std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", process_), gone), end;
       !gone && task != end; task.increment(gone)) {
    std::ifstream file(task->path() / "syscall");
    std::string call;
    std::getline(file, call);
    if (call == "running") return std::nullopt;
    long number = -1;
    unsigned long long word = 0, stack = 0, pc = 0;
    if (std::sscanf(call.c_str(), "%ld %llx %*x %*x %*x %*x %*x %llx %llx", &number, &word, &stack, &pc) !=
            4 ||
        number != SYS_futex || word < channel.begin || word >= channel.end)
      continue;
    const auto offset =
        static_cast<int64_t>(word - channel.begin) -
        static_cast<int64_t>(offsetof(preload::Channel, slots) + offsetof(preload::Slot, turn));
    constexpr auto kSlot = static_cast<int64_t>(sizeof(preload::Slot));
    if (offset < 0 || offset % kSlot != 0) continue;
    all.push_back(
        {std::stoi(task->path().filename().string()), static_cast<uint32_t>(offset / kSlot), stack, pc});
  }
  return all;
}

std::vector<uint64_t> StackNames::return_addresses(const std::vector<StackFrame>& frames) const {
  std::vector<uint64_t> words;
  for (const StackFrame& frame : frames) {
    const std::optional<uint64_t> word = word_at(frame.cfa - sizeof(uint64_t));
    if (!word) return {};
    words.push_back(*word);
  }
  return words;
}

// Reuses the known frames if the thread is at the same place with the same return addresses.
const StackNames::Known& StackNames::frames(const Thread& thread) {
  Known& known = known_[thread.id];
  if (known.stack == thread.stack && known.pc == thread.pc && !known.frames.empty() &&
      known.returns == return_addresses(known.frames))
    return known;
  known = {thread.stack, thread.pc, stacks_->frames(thread.id), {}, std::move(known.frames)};
  known.returns = return_addresses(known.frames);
  return known;
}

}  // namespace slalom
