#include "native.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace slalom::vm::diff {
namespace {

constexpr int kPatienceMs = 10'000;  // for a batch, which normally takes a millisecond

}  // namespace

Result<std::unique_ptr<Native>> Native::make(const Backgrounds& backgrounds) {
  std::unique_ptr<Native> native(new Native);
  void* memory = mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return error("no memory to share with a child: {}", std::strerror(errno));
  native->exchange_ = new (memory) Exchange;
  Exchange& exchange = *native->exchange_;
  exchange.backgrounds = backgrounds;
  exchange.has_fsgsbase = (getauxval(AT_HWCAP2) & 2) != 0;
  exchange.code_file = memfd_create("x86_diff code", MFD_CLOEXEC);
  if (exchange.code_file < 0 || ftruncate(exchange.code_file, kCodeSize) != 0)
    return error("no memory for code: {}", std::strerror(errno));
  void* alias = mmap(nullptr, kCodeSize, PROT_READ | PROT_WRITE, MAP_SHARED, exchange.code_file, 0);
  if (alias == MAP_FAILED) return error("no memory for code: {}", std::strerror(errno));
  exchange.code_alias = static_cast<uint8_t*>(alias);
  TRY(native->start());
  // A case with only the breakpoint behind it. If this fails, no case can run.
  Case nothing;
  nothing.state.rip = kCode;
  nothing.state.gpr[4] = kData;
  nothing.state.floats.set<uint32_t>(FloatState::kMxcsr, 0x1f80);
  exchange.cases[0] = nothing;
  TRY(native->run(1));
  if (!exchange.outcomes[0].ended || exchange.outcomes[0].vector != 3)
    return error("the host does not let a child run code at {:x}", kCode);
  return native;
}

Native::~Native() {
  stop();
  if (exchange_ == nullptr) return;
  if (exchange_->code_alias != nullptr) munmap(exchange_->code_alias, kCodeSize);
  if (exchange_->code_file >= 0) close(exchange_->code_file);
  munmap(exchange_, sizeof(Exchange));
}

Result<void> Native::start() {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
    return error("no pipe: {}", std::strerror(errno));
  exchange_->from_parent = down[0];
  exchange_->to_parent = up[1];
  child_ = fork();
  if (child_ < 0) return error("cannot fork: {}", std::strerror(errno));
  if (child_ == 0) {
    close(down[1]);
    close(up[0]);
    serve(*exchange_);
  }
  close(down[0]);
  close(up[1]);
  to_child_ = down[1];
  from_child_ = up[0];
  return {};
}

void Native::stop() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  close(to_child_);
  close(from_child_);
  child_ = -1;
}

Result<void> Native::run(unsigned count) {
  exchange_->count = count;
  exchange_->next = 0;
  for (unsigned i = 0; i < count; ++i) exchange_->outcomes[i].ended = false;
  while (exchange_->next < count) {
    char byte = 0;
    bool answered = false;
    if (write(to_child_, &byte, 1) == 1) {
      pollfd wait{.fd = from_child_, .events = POLLIN, .revents = 0};
      answered = poll(&wait, 1, kPatienceMs) == 1 && read(from_child_, &byte, 1) == 1;
    }
    if (answered) continue;
    // The running case is lost. Continue with the next one.
    stop();
    ++exchange_->next;
    TRY(start());
  }
  return {};
}

}  // namespace slalom::vm::diff
