// Condition variables that the program shares with processes that it has forked. A signal leaves no trace in
// a condition variable on which no thread really waits, and the program's threads do not really wait. But
// such a process also has slalom's library, which reports its signals to the program, in order.
//
// Programs that a child executes do not have the library, and memory that a child maps by itself has other
// addresses. Then the runtime does not know what is signalled (preload/processes/outside.cc).
#include <utility>

#include "preload/runtime/runtime.h"
#include "preload/sync/waits.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 63;  // a broadcast
constexpr uint32_t kOfCondition = 0;          // no futex bits: for condition variables

}  // namespace

void Runtime::tell_shared_signal(const pthread_cond_t* condition, bool all) {
  constexpr unsigned kShared = 1;  // glibc's bit
  if (!is_forked() || (condition->__data.__wrefs & kShared) == 0) return;
  const uint64_t signal = object_id(condition) | (all ? kAll : 0);
  // Several processes may run this code at once, and each may be killed at any moment.
  for (std::atomic<uint64_t>& place : channel_->shared_signals) {
    uint64_t expected = 0;
    if (place.load(std::memory_order_relaxed) == 0 && place.compare_exchange_strong(expected, signal)) return;
  }
  note_unreported_signals();  // no room
}

void Runtime::note_unreported_signals() {
  if (channel_ != nullptr) channel_->unreported_signals.store(1, std::memory_order_relaxed);
}

void Runtime::take_shared_signals() {
  while (shared_signals_taken_ < kMostSharedSignals) {
    const uint64_t signal = channel_->shared_signals[shared_signals_taken_].load(std::memory_order_acquire);
    if (signal == 0) return;
    ++shared_signals_taken_;
    const auto* condition = reinterpret_cast<const void*>(signal & ~kAll);
    tell(OpKind::Note, object_id(condition), 0, 0, kNoAgent, "a child signals it");
    // The choice of the woken agent counts as the running agent's, even if that has just begun to wait or has
    // ended.
    Slot::State& state = slot(self()).state;
    const Slot::State before = std::exchange(state, Slot::State::Enabled);
    wake_some(OpKind::CpuUse, condition, (signal & kAll) != 0 ? UINT32_MAX : 1, kOfCondition);
    state = before;
  }
}

void Runtime::forget_shared_signals() {
  for (std::atomic<uint64_t>& place : channel_->shared_signals)
    if (place.exchange(0, std::memory_order_relaxed) == 0) break;
  channel_->unreported_signals.store(0, std::memory_order_relaxed);
  shared_signals_taken_ = shared_wakes_ = 0;
}

}  // namespace slalom::preload
