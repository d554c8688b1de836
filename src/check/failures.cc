#include "check/failures.h"

#include <assert.h>
#include <cxxabi.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <exception>
#include <memory>
#include <typeinfo>

#include "check/fiber.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/fault_words.h"

namespace slalom::checking {
namespace {

using preload::Ending;
using preload::Runtime;
using preload::runtime;

constexpr std::array kFatal = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr size_t kSignalStack = 64 * 1024;

constinit thread_local uint64_t last_throw = 0;  // the place of the throw

// The handlers that the process had before. The process has one of each.
struct Watch {
  std::array<struct sigaction, kFatal.size()> actions;
  stack_t stack;
  std::terminate_handler terminate = nullptr;
  void* memory = nullptr;
};
constinit Watch watch = {};

const char* describe(int signal, const siginfo_t& info) {
  const bool overflow = Fibers::is_overflow(reinterpret_cast<uint64_t>(info.si_addr));
  return preload::fault_words(signal, info, overflow ? "stack overflow: a thread has 1 MB" : nullptr);
}

// If the body caused the signal, it leaves the handler for good. SA_NODEFER keeps the signal deliverable.
void on_signal(int signal, siginfo_t* info, void* data) {
  const auto& context = *static_cast<ucontext_t*>(data);
  Runtime& rt = runtime();
  if (rt.controls()) {
    const auto pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
    rt.fail(Ending::Kind::Crash, rt.place(reinterpret_cast<void*>(pc + 1)), describe(signal, *info));
  }
  // The signal is not the body's: restores the process's own action. The instruction then runs again.
  for (size_t i = 0; i < kFatal.size(); ++i)
    if (kFatal[i] == signal) sigaction(signal, &watch.actions[i], nullptr);
}

// Returns text such as "std::logic_error: the queue is empty". Only the type if the exception is not a
// std::exception; empty if there is no exception.
std::string current_exception_in_words() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return {};
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), free);
  std::string words = status == 0 ? name.get() : type->name();
  try {
    throw;
  } catch (const std::exception& exception) {
    words += fmt::format(": {}", exception.what());
  } catch (...) {
  }
  return words;
}

[[noreturn]] void fail_with(Ending::Kind kind, const std::string& words, uint64_t pc) {
  Runtime& rt = runtime();
  // The string is leaked, because the fiber never continues.
  rt.fail(kind, pc, words.c_str());
}

[[noreturn]] void on_terminate() {
  if (!runtime().controls()) {
    if (watch.terminate != nullptr) watch.terminate();
    abort();
  }
  const std::string exception = current_exception_in_words();
  fail_with(Ending::Kind::Crash,
            exception.empty() ? "std::terminate: for instance a thread that was neither joined nor detached"
                              : "uncaught exception " + exception,
            SLALOM_PLACE());
}

}  // namespace

void watch_failures() {
  if (watch.memory == nullptr)
    watch.memory = mmap(nullptr, kSignalStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const stack_t stack{.ss_sp = watch.memory, .ss_flags = 0, .ss_size = kSignalStack};
  sigaltstack(&stack, &watch.stack);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &action, &watch.actions[i]);
  watch.terminate = std::set_terminate(on_terminate);
}

void unwatch_failures() {
  std::set_terminate(watch.terminate);
  for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &watch.actions[i], nullptr);
  sigaltstack(&watch.stack, nullptr);
}

void fail_for_exception() {
  const std::string words = "uncaught exception " + current_exception_in_words();
  fail_with(Ending::Kind::Assertion, words, last_throw);
}

void note_throw(uint64_t pc) {
  last_throw = pc;
}

}  // namespace slalom::checking

using namespace slalom::preload;

extern "C" void __cxa_throw(void*, void*, void (*)(void*));
SLALOM_EXPORT void __cxa_throw(void* exception, void* type, void (*destructor)(void*)) {
  if (runtime().controls()) slalom::checking::note_throw(SLALOM_PLACE());
  SLALOM_REAL(__cxa_throw)(exception, type, destructor);
  __builtin_unreachable();
}

SLALOM_EXPORT void abort() noexcept {
  if (runtime().controls()) runtime().fail(Ending::Kind::Crash, SLALOM_PLACE(), "abort");
  SLALOM_REAL(abort)();
  __builtin_unreachable();
}
SLALOM_EXPORT void exit(int status) noexcept {
  if (runtime().controls())
    runtime().fail(Ending::Kind::Crash, SLALOM_PLACE(), "the body of the test calls exit()");
  SLALOM_REAL(exit)(status);
  __builtin_unreachable();
}
SLALOM_EXPORT void __assert_fail(const char* condition, const char* file, unsigned line,
                                 const char* function) noexcept {
  if (runtime().controls()) runtime().fail(Ending::Kind::Assertion, SLALOM_PLACE(), condition);
  SLALOM_REAL(__assert_fail)(condition, file, line, function);
  __builtin_unreachable();
}
