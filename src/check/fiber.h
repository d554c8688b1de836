// Fibers: what the threads of a test body run on when executions happen inside one process. All of them share
// one kernel thread; passing the turn is an exchange of registers.
//
// A fiber has a stack of its own, at the same address in every process, and the thread-local storage of a
// real thread that was created for that purpose and sleeps for ever: so errno, thread_local variables,
// malloc's caches and pthread_self() are right without anybody's help. Both are used again by later
// executions; what the modules keep in thread-local storage is then as it is in a new thread. Not for
// deciding who runs: see check/check_machine.h.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slalom::checking {

inline constexpr uint64_t kStacks = 0x610000000000;  // no process has anything there
inline constexpr uint64_t kStackSlot = uint64_t{1} << 20;
inline constexpr uint32_t kMostFibers = 1024;

struct Context {
  void* stack = nullptr;     // when it does not run
  uint64_t thread_base = 0;  // the fs base
};

class Fibers {
 public:
  // The calling thread becomes the one on which all fibers run; fiber 0 shares its thread-local storage.
  // False: the system gives no memory, or no threads.
  bool prepare();

  // Gives fiber `index` a fresh stack, on which it will call entry(index), and fresh thread-local storage
  // (0 keeps that of the calling thread).
  bool start(uint32_t index, void (*entry)(uint32_t));
  // From outside: runs the fiber until it calls leave().
  void enter(uint32_t index);
  void leave();  // from a fiber, back to where it was entered

  uint32_t running() const { return running_; }
  pthread_t thread(uint32_t index) const {
    return reinterpret_cast<pthread_t>(fibers_[index].at.thread_base);
  }
  static bool on_a_stack(uint64_t address) { return address - kStacks < kMostFibers * kStackSlot; }
  // The stack pointer lies in the guard page below a fiber's stack, or near it.
  static bool is_overflow(uint64_t address);

 private:
  struct LocalData {  // of one module, in one thread
    char* data;
    const void* image;
    size_t image_size, size;
  };
  struct Fiber {
    Context at;
    void* lowest = nullptr;  // that its stack pointer was seen at since it was started; null: not known
    std::vector<LocalData> locals;
  };
  static void* lend(void* fiber);
  bool add();

  std::vector<Fiber> fibers_;
  Context outside_;
  uint32_t running_ = 0;
  bool fast_ = false;  // the processor lets user code set the thread's base
};

}  // namespace slalom::checking
