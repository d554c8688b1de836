// Debugger: a stock gdb, attached to one execution of a program that slalom goes on steering.
//
// It is started when the execution stands at the entry of main(), and waits there until its breakpoints are
// set. The target then runs whenever both let it: slalom by giving a thread its turn, gdb by "continue". Not
// for kernels: those have a debugger stub (vm/gdb).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace slalom {

class Debugger {
 public:
  struct Options {
    uint64_t show_at = 0;  // a step after which it is to stop; 0: none
    enum class Begin : uint8_t { Failure, Start } begin = Begin::Failure;  // where the user gets the prompt
    std::vector<std::string> arguments;                                    // more for gdb
  };

  explicit Debugger(Options options) : options_(std::move(options)) {}
  ~Debugger() { wait(); }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  uint64_t show_at() const { return options_.show_at; }
  bool used() const { return used_; }
  Result<void> attach(pid_t target);
  void wait();  // until the user has left it

 private:
  Options options_;
  pid_t gdb_ = -1;
  bool used_ = false;
};

}  // namespace slalom
