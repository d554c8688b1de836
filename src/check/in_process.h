// InProcess: executions of a test body inside the process that asks for them. The threads of the body are
// fibers; the model of the threading API (src/preload) talks to the machine through a Channel that nobody
// else shares.
//
// One at a time, in one thread of the process: whoever is second is refused. Everything that runs outside of
// the body (the test framework, slalom itself, other threads) is not controlled.
#pragma once

#include <functional>
#include <string>

#include "check/fiber.h"
#include "preload/protocol.h"

namespace slalom::checking {

// Whose execution it is: asked to bring it to an end when another one begins.
class Occupant {
 public:
  virtual void give_up() = 0;

 protected:
  ~Occupant() = default;
};

class InProcess {
 public:
  // A message that says what to do where the process cannot be used; else empty.
  std::string open(const std::function<void()>& body);
  void close();

  preload::Channel& channel() { return *channel_; }

  // An execution: begin(), then let_run() until the channel's phase is Over, or end().
  void begin(Occupant& occupant);
  void let_run(uint32_t agent);  // until it hands over
  void end(bool normally);       // whatever is left of it is forgotten: no destructors run
  uint32_t uncontrolled() const { return uncontrolled_; }  // what was met since open(), as in the channel

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
  } exceptions_ = {};   // of the calling thread, before the execution
  uint32_t calls_ = 0;  // likewise: how deep it is in instrumented functions
};

InProcess& in_process();

}  // namespace slalom::checking
