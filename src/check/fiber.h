// Fibers: the execution contexts of a test body's threads when executions run inside one process. All fibers
// share one kernel thread. Passing the turn is an exchange of registers.
//
// A fiber has a stack of its own, at the same address in every process. It also has the thread-local storage
// of a real thread that was created for that purpose and sleeps for ever. So errno, thread_local variables,
// malloc's caches and pthread_self() are right without further help. Later executions reuse both, after the
// modules' thread-local data is reset as in a new thread. Not for deciding which agent runs: see
// check/check_machine.h.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slalom::checking {

inline constexpr uint64_t kStacks = 0x610000000000;  // processes do not use this address
inline constexpr uint64_t kStackSlot = uint64_t{1} << 20;
inline constexpr uint32_t kMostFibers = 1024;

struct Context {
  void* stack = nullptr;     // stack pointer while the fiber does not run
  uint64_t thread_base = 0;  // the fs base
};

class Fibers {
 public:
  // Makes the calling thread the one on which all fibers run. Fiber 0 shares its thread-local storage.
  // Returns false if the system gives no memory or no threads.
  bool prepare();

  // Gives fiber `index` a fresh stack, on which it will call entry(index), and fresh thread-local storage
  // (0 keeps that of the calling thread).
  bool start(uint32_t index, void (*entry)(uint32_t));
  // Call outside fibers: runs the fiber until it calls leave().
  void enter(uint32_t index);
  void leave();  // call in a fiber; returns to its enter()

  uint32_t running() const { return running_; }
  pthread_t thread(uint32_t index) const {
    return reinterpret_cast<pthread_t>(fibers_[index].at.thread_base);
  }
  static bool on_a_stack(uint64_t address) { return address - kStacks < kMostFibers * kStackSlot; }
  // Returns whether the address lies in the guard page below a fiber's stack.
  static bool is_overflow(uint64_t address);

 private:
  struct LocalData {  // thread-local data of one module in one thread
    char* data;
    const void* image;
    size_t image_size, size;
  };
  struct Fiber {
    Context at;
    // Its lowest stack pointer seen since it was started; nullptr if unknown.
    void* lowest = nullptr;
    std::vector<LocalData> locals;
  };
  static void* lend(void* fiber);
  bool add();

  std::vector<Fiber> fibers_;
  Context outside_;
  uint32_t running_ = 0;
  bool fast_ = false;  // user code can set the thread's base register
};

}  // namespace slalom::checking
