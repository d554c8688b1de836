// A lock-free stack of numbered nodes. Its head holds a version beside the top node, so that a thread which
// stops inside pop() notices that others have changed the stack. With too few bits the version comes round
// again, and pop() installs a next node that is out of date.
#pragma once

#include <slalom/check.h>

#include <array>
#include <atomic>
#include <string_view>

enum class Counts { Pushes, PushesAndPops };

template <unsigned kVersions, Counts counts>
class VersionedStack {
 public:
  static constexpr unsigned kNodes = 2;

  VersionedStack() {
    next_[2].store(1, std::memory_order_relaxed);
    head_.store(2, std::memory_order_relaxed);
  }

  // 0 if the stack is empty.
  unsigned pop() {
    for (;;) {
      unsigned head = head_.load();
      if (top(head) == 0) return 0;
      const unsigned next = next_[top(head)].load();
      const unsigned version = counts == Counts::PushesAndPops ? 1 : 0;
      if (head_.compare_exchange_strong(head, make(next, version_of(head) + version))) return top(head);
    }
  }

  void push(unsigned node) {
    for (;;) {
      unsigned head = head_.load();
      next_[node].store(top(head));
      if (head_.compare_exchange_strong(head, make(node, version_of(head) + 1))) return;
    }
  }

 private:
  static constexpr unsigned kVersionShift = 8;
  static unsigned top(unsigned head) { return head % (1u << kVersionShift); }
  static unsigned version_of(unsigned head) { return head >> kVersionShift; }
  static unsigned make(unsigned node, unsigned version) {
    return node | version % kVersions << kVersionShift;
  }

  std::atomic<unsigned> head_{0};
  std::array<std::atomic<unsigned>, kNodes + 1> next_{};
};

// A stack and the owners of its nodes: a node on the stack has no owner, and one thread owns a popped
// node.
template <typename Stack>
struct Shared {
  Stack stack;
  std::array<std::atomic<bool>, Stack::kNodes + 1> owned{};
};

// One thread's operations: '-' pops a node, '+' pushes the one it popped last.
template <typename Stack>
void work(Shared<Stack>& shared, std::string_view steps) {
  std::array<unsigned, Stack::kNodes> mine{};
  size_t count = 0;
  for (const char step : steps) {
    if (step == '-') {
      const unsigned node = shared.stack.pop();
      if (node == 0) continue;
      slalom::expect(!shared.owned[node].exchange(true), "two threads own the same node");
      mine[count++] = node;
    } else if (count > 0) {
      const unsigned node = mine[--count];
      shared.owned[node].store(false);
      shared.stack.push(node);
    }
  }
}
