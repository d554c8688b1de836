// Three threads take buffers from a pool and give them back. The pool is a stack whose version has one bit,
// which every change flips: after two changes it is the old one again.
//
// Two threads own the same buffer only after 6 preemptions; no schedule with fewer shows it. FIXED, the
// version has 24 bits.
#include <thread>

#include "rare.h"
#include "versioned_stack.h"

#ifdef FIXED
using Pool = VersionedStack<1u << 24, Counts::PushesAndPops>;
#else
using Pool = VersionedStack<2, Counts::PushesAndPops>;
#endif

int main() {
  return search("buffer-pool", [] {
    Shared<Pool> shared;
    std::thread first([&] { work(shared, "--+-"); });
    std::thread second([&] { work(shared, "-+"); });
    std::thread third([&] { work(shared, "--"); });
    first.join();
    second.join();
    third.join();
  });
}
