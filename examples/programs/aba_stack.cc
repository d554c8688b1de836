// A lock-free stack that compares pointers only: between a thread's read of the top and its exchange, others
// can pop two nodes and push the first one back. The exchange succeeds, and the stack gets a node that is in
// use elsewhere.
//
// flags: -fsanitize=thread
// expect: assertion
#include <atomic>
#include <cassert>
#include <cstdint>
#include <thread>

static constexpr int kNodes = 3;
static std::atomic<uint32_t> next_of[kNodes];
static std::atomic<uint64_t> top{0};  // low half: index + 1; high half: a version
static std::atomic<int> in_use[kNodes];

static uint64_t changed(uint64_t old, uint32_t index) {
#ifdef FIXED
  return ((old >> 32) + 1) << 32 | index;
#else
  (void)old;
  return index;
#endif
}

static int pop() {
  for (;;) {
    uint64_t seen = top.load();
    const uint32_t index = static_cast<uint32_t>(seen);
    if (index == 0) return -1;
    const uint32_t next = next_of[index - 1].load();
    if (top.compare_exchange_strong(seen, changed(seen, next))) {
      assert(in_use[index - 1].exchange(1) == 0);
      return static_cast<int>(index - 1);
    }
  }
}

static void push(int node) {
  in_use[node].store(0);
  for (;;) {
    uint64_t seen = top.load();
    next_of[node].store(static_cast<uint32_t>(seen));
    if (top.compare_exchange_strong(seen, changed(seen, static_cast<uint32_t>(node + 1)))) return;
  }
}

int main() {
  for (int node = 0; node < kNodes; ++node) push(node);
  std::thread slow([] { pop(); });
  std::thread fast([] {
    const int first = pop();
    pop();
    if (first >= 0) push(first);
  });
  slow.join();
  fast.join();
  while (pop() >= 0) {
  }
}
