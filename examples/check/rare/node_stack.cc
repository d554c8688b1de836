// Three threads share a stack whose version has one bit and counts only pushes: after two pushes it is the
// old one again.
//
// Two threads own the same node only after 4 preemptions; no schedule with fewer shows it. FIXED, the version
// has 24 bits.
#include <thread>

#include "rare.h"
#include "versioned_stack.h"

#ifdef FIXED
using Stack = VersionedStack<1u << 24, Counts::Pushes>;
#else
using Stack = VersionedStack<2, Counts::Pushes>;
#endif

int main() {
  return search("node-stack", [] {
    Shared<Stack> shared;
    std::thread first([&] { work(shared, "--+-"); });
    std::thread second([&] { work(shared, "-"); });
    std::thread third([&] { work(shared, "-+"); });
    first.join();
    second.join();
    third.join();
  });
}
