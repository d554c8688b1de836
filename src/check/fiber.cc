#include "check/fiber.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "preload/runtime/raw.h"

extern "C" {
void slalom_switch(slalom::checking::Context* from, const slalom::checking::Context* to);
void slalom_switch_slowly(slalom::checking::Context* from, const slalom::checking::Context* to);
void slalom_fiber_begin();
}

namespace slalom::checking {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kUnseen = 1024;  // bytes that functions may use below a fiber's lowest known stack pointer
constexpr unsigned long kCanSetBase = 2;  // bit in AT_HWCAP2
constexpr size_t kLenderStack = 64 * 1024;

uint64_t top_of(uint32_t index) {
  return kStacks + (index + uint64_t{1}) * kStackSlot;
}

// Returns whether the module keeps its thread-local data when another fiber uses the thread: libc (malloc's
// caches) and slalom's own library.
bool keeps_its_locals(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  for (const char* start : {"libc.so", "libc-", "ld-linux", "libslalom_check"})
    if (strncmp(name, start, strlen(start)) == 0) return true;
  return false;
}

// Calls libc's memset, because the instructions that the compiler would inline start slowly.
void clear(void* from, size_t size) {
  static auto* volatile libcs = SLALOM_REAL(memset);
  libcs(from, 0, size);
}

struct Lending {
  void* fiber = nullptr;
  std::atomic<uint32_t> ready{0};
};

}  // namespace

// Runs in the real thread whose thread-local storage a fiber will use. Notes where that storage is, then
// sleeps.
void* Fibers::lend(void* data) {
  auto& lending = *static_cast<Lending*>(data);
  auto& fiber = *static_cast<Fiber*>(lending.fiber);
  fiber.at.thread_base = pthread_self();
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (info->dlpi_tls_data == nullptr || keeps_its_locals(info->dlpi_name)) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          if (header.p_type == PT_TLS)
            static_cast<Fiber*>(to)->locals.push_back(
                {static_cast<char*>(info->dlpi_tls_data),
                 reinterpret_cast<const void*>(info->dlpi_addr + header.p_vaddr), header.p_filesz,
                 header.p_memsz});
        }
        return 0;
      },
      &fiber);
  lending.ready = 1;
  preload::futex_wake(lending.ready);
  static std::atomic<uint32_t> never{0};
  for (;;) preload::futex_wait(never, uint32_t{0});
}

bool Fibers::prepare() {
  if (fibers_.empty()) {
    void* memory = mmap(reinterpret_cast<void*>(kStacks), kMostFibers * kStackSlot, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != reinterpret_cast<void*>(kStacks)) return false;
    fast_ = (getauxval(AT_HWCAP2) & kCanSetBase) != 0;
    fibers_.reserve(kMostFibers);  // reserved, because lenders hold pointers to the elements
    if (!add()) return false;
  }
  outside_.thread_base = fibers_[0].at.thread_base = pthread_self();
  return true;
}

// Adds a fiber: its stack, and a thread that lends it thread-local storage.
bool Fibers::add() {
  const auto index = static_cast<uint32_t>(fibers_.size());
  if (index >= kMostFibers) return false;
  auto* bottom = reinterpret_cast<char*>(top_of(index) - kStackSlot);
  if (mprotect(bottom + kPage, kStackSlot - kPage, PROT_READ | PROT_WRITE) != 0) return false;
  Fiber& fiber = fibers_.emplace_back();
  if (index == 0) return true;
  Lending lending{.fiber = &fiber};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kLenderStack);
  pthread_t thread{};
  const int result = SLALOM_REAL(pthread_create)(&thread, &attributes, lend, &lending);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (result != 0) {
    fibers_.pop_back();
    return false;
  }
  while (lending.ready == 0) preload::futex_wait(lending.ready, uint32_t{0});
  return true;
}

bool Fibers::start(uint32_t index, void (*entry)(uint32_t)) {
  while (index >= fibers_.size())
    if (!add()) return false;
  Fiber& fiber = fibers_[index];
  for (const LocalData& local : fiber.locals) {
    memcpy(local.data, local.image, local.image_size);
    memset(local.data + local.image_size, 0, local.size - local.image_size);
  }
  // Clears the data of earlier executions from the stack, because this execution could read it. Clears as
  // much as the fiber was seen to use, and some more.
  auto* const top = reinterpret_cast<char*>(top_of(index));
  const auto used = static_cast<size_t>(top - static_cast<char*>(fiber.lowest)) + kUnseen;
  clear(top - std::min(used, kPage), std::min(used, kPage));
  // The layout that slalom_switch leaves: control words, six registers, return address; aligned as before a
  // call. The other words are 0 already.
  auto* words = reinterpret_cast<uint64_t*>(top) - 10;
  words[0] = uint64_t{0x037f} << 32 | 0x1f80;
  words[3] = index;
  words[4] = reinterpret_cast<uint64_t>(entry);
  words[7] = reinterpret_cast<uint64_t>(slalom_fiber_begin);
  fiber.at.stack = fiber.lowest = words;
  return true;
}

void Fibers::enter(uint32_t index) {
  running_ = index;
  (fast_ ? slalom_switch : slalom_switch_slowly)(&outside_, &fibers_[index].at);
  Fiber& fiber = fibers_[index];  // looked up again, because the vector may have grown
  fiber.lowest = std::min(fiber.lowest, fiber.at.stack);
}

void Fibers::leave() {
  (fast_ ? slalom_switch : slalom_switch_slowly)(&fibers_[running_].at, &outside_);
}

bool Fibers::is_overflow(uint64_t address) {
  return on_a_stack(address) && (address - kStacks) % kStackSlot < kPage;
}

}  // namespace slalom::checking
