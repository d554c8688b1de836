// A ring for one producer and one consumer, without locks. It publishes an element before storing it, unless
// it is FIXED: the consumer can get the old contents of the slot.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

class Ring {
 public:
  bool push(int value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == slots_.size()) return false;
#ifdef FIXED
    slots_[tail % slots_.size()] = value;
    tail_.store(tail + 1, std::memory_order_release);
#else
    tail_.store(tail + 1, std::memory_order_release);
    slots_[tail % slots_.size()] = value;
#endif
    return true;
  }

  bool pop(int& value) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    value = slots_[head % slots_.size()];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  std::array<int, 2> slots_{};
  std::atomic<size_t> head_{0}, tail_{0};
};
