#include "process/uncontrolled.h"

#include "preload/protocol.h"

namespace slalom {
namespace {

using preload::Uncontrolled;

UncontrolledAct act_of(Uncontrolled what) {
  switch (what) {
    case Uncontrolled::Fork:
      return {"the program forks: what its children do is not controlled"};
    case Uncontrolled::ForeignThread:
      return {
          "threads are started before main(), by clone(), or in processes that the program forks: executions "
          "do not have the first, and do not control the others"};
    case Uncontrolled::LeakedThread:
      return {
          "threads were still there when the program ended, neither joined nor detached; --detectors "
          "default,thread-leak says which",
          false};
    case Uncontrolled::Timer:
      return {"the program uses timers of its processor time, or too many: they are not controlled"};
    case Uncontrolled::Outside:
      return {
          "the program waits for something outside of it (a socket, a terminal, a process that it started): "
          "when that comes, and what, is not controlled; a server on this machine that always sends the "
          "same, "
          "and at once, makes executions that can be repeated"};
    case Uncontrolled::Blocking:
      return {"the program waits in system calls that slalom does not model"};
    case Uncontrolled::KernelIo:
      return {
          "the kernel's own asynchronous input and output (io_submit, io_uring) is used: when it completes "
          "is not controlled"};
    case Uncontrolled::Program:
      return {
          "the program starts other programs, or one in its own place (system, popen, posix_spawn, exec): "
          "what they do is not controlled"};
    case Uncontrolled::Errors:
      return {
          "more calls failed in one execution than are kept (4,096 errors): in replays those after them are "
          "made again",
          false};
    case Uncontrolled::Namespace:
      return {
          "the program loads modules into a namespace of their own (dlmopen), where they have another libc: "
          "what they do is not controlled"};
    case Uncontrolled::Threads:
      return {
          "more threads were started in one execution than slalom can control (1,024): pthread_create() gave "
          "EAGAIN for the others"};
    case Uncontrolled::OpenMp:
      return {
          "the program uses what slalom does not know of OpenMP (detached tasks, more than 256 kinds of "
          "tasks, more than 16,384 iterations that wait for each other, or 8 counters of one): what is "
          "reported there may be wrong"};
    case Uncontrolled::Missing:
      return {
          "a thread is joined that was started before main(): executions do not have it, and pthread_join() "
          "gave ESRCH"};
    case Uncontrolled::Proc:
      return {
          "the program reads files of /proc that say how the system and its processes fare (status, stat, "
          "meminfo, ...): what is in them is not controlled"};
    case Uncontrolled::Signal:
      return {"signals come from outside of the program: when they do is not controlled"};
  }
  return {};
}

}  // namespace

std::vector<UncontrolledAct> uncontrolled_in_words(uint32_t bits) {
  std::vector<UncontrolledAct> acts;
  for (uint32_t bit = 1; bit != 0; bit <<= 1)
    if ((bits & bit) != 0)
      if (UncontrolledAct act = act_of(static_cast<Uncontrolled>(bit)); !act.text.empty())
        acts.push_back(std::move(act));
  return acts;
}

}  // namespace slalom
