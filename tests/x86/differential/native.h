// Runs cases on the host's CPU, in a child process that is replaced if a case destroys it.
#pragma once

#include <sys/types.h>

#include <span>

#include "base/result.h"
#include "case.h"

namespace slalom::vm::diff {

// Memory that is shared with the child. The child runs the cases one after the other, until the end of the
// batch or until it dies.
struct Exchange {
  static constexpr unsigned kBatch = 64;

  Backgrounds backgrounds;
  std::array<Case, kBatch> cases;
  std::array<Outcome, kBatch> outcomes;
  uint32_t count = 0;
  uint32_t next = 0;  // the running case
  bool has_fsgsbase = false;
  int code_file = -1;  // the code pages, written through another mapping than the executed one
  uint8_t* code_alias = nullptr;
  int from_parent = -1, to_parent = -1;
};

class Native {
 public:
  static Result<std::unique_ptr<Native>> make(const Backgrounds& backgrounds);
  ~Native();

  Exchange& exchange() { return *exchange_; }
  // Runs exchange().cases[0, count). Cases that kill the child or never end have ended == false.
  Result<void> run(unsigned count);

 private:
  Native() = default;
  Result<void> start();
  void stop();

  Exchange* exchange_ = nullptr;
  pid_t child_ = -1;
  int to_child_ = -1, from_child_ = -1;
};

// native_child.cc: does not return.
[[noreturn]] void serve(Exchange& exchange);

}  // namespace slalom::vm::diff
