// Debugger: a stock gdb, attached to one execution of a program that slalom continues to steer.
//
// gdb is started when the execution is stopped at the entry of main(), which waits until the breakpoints are
// set. The target then runs when both allow it: slalom by giving a thread its turn, gdb by "continue". Not
// for kernels, which have a debugger stub (vm/gdb).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace slalom {

class Debugger {
 public:
  struct Options {
    uint64_t show_at = 0;  // step after which to stop; 0 for none
    // Where the user gets the prompt.
    enum class Begin : uint8_t { Failure, Start } begin = Begin::Failure;
    std::vector<std::string> arguments;  // further arguments for gdb
  };

  explicit Debugger(Options options) : options_(std::move(options)) {}
  ~Debugger() { wait(); }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  uint64_t show_at() const { return options_.show_at; }
  bool used() const { return used_; }
  Result<void> attach(pid_t target);
  void wait();  // until the user has left gdb

 private:
  Options options_;
  pid_t gdb_ = -1;
  bool used_ = false;
};

}  // namespace slalom
