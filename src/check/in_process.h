// InProcess: executions of a test body inside the process that calls slalom::check. The threads of the body
// are fibers. The model of the threading API (src/preload) talks to the machine through a Channel that is
// private to this process.
//
// Only one check at a time, in one thread of the process; a second one is refused. Code outside the body (the
// test framework, slalom itself, other threads) is not controlled.
#pragma once

#include <functional>
#include <string>

#include "check/fiber.h"
#include "preload/protocol.h"

namespace slalom::checking {

// The owner of the current execution. It must end that execution when another one begins.
class Occupant {
 public:
  virtual void give_up() = 0;

 protected:
  ~Occupant() = default;
};

class InProcess {
 public:
  // Returns an empty text, or a message for the user if the process cannot be used.
  std::string open(const std::function<void()>& body);
  void close();

  preload::Channel& channel() { return *channel_; }

  // An execution: call begin(), then let_run() until the channel's phase is Over, then end().
  void begin(Occupant& occupant);
  void let_run(uint32_t agent);  // returns when the agent hands over
  // Drops the rest of the execution without running destructors.
  void end(bool normally);
  uint32_t uncontrolled() const { return uncontrolled_; }  // the Uncontrolled bits met since open()

  Fibers& fibers() { return fibers_; }
  const std::function<void()>& body() const { return *body_; }

 private:
  Fibers fibers_;
  preload::Channel* channel_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  Occupant* occupant_ = nullptr;
  bool ended_normally_ = true;
  uint32_t uncontrolled_ = 0;
  struct {
    void* caught;
    unsigned uncaught;
  } exceptions_ = {};   // exceptions of the calling thread before the execution
  uint32_t calls_ = 0;  // its nesting depth in instrumented functions before the execution
};

InProcess& in_process();

}  // namespace slalom::checking
