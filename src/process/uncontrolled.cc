#include "process/uncontrolled.h"

#include "preload/protocol.h"

namespace slalom {

std::vector<std::string> uncontrolled_in_words(uint32_t bits) {
  using preload::Uncontrolled;
  std::vector<std::string> words;
  const auto add = [&](Uncontrolled what, const char* text) {
    if (bits & static_cast<uint32_t>(what)) words.emplace_back(text);
  };
  add(Uncontrolled::Fork, "the program forks: what its children do is not controlled");
  add(Uncontrolled::ForeignThread,
      "threads are started before main(), by clone(), or in processes that the program forks: executions do "
      "not have the first, and do not control the others");
  add(Uncontrolled::LeakedThread,
      "threads were still there when the program ended, neither joined nor detached; --detectors "
      "default,thread-leak says which");
  add(Uncontrolled::Timer,
      "the program uses timers of its processor time, or too many: they are not controlled");
  add(Uncontrolled::Outside,
      "the program waits for something outside of it (a socket, a terminal, a process that it started): when "
      "that "
      "comes is not controlled");
  add(Uncontrolled::Blocking, "the program waits in system calls that slalom does not model");
  add(Uncontrolled::KernelIo,
      "the kernel's own asynchronous input and output (io_submit, io_uring) is used: when it completes is "
      "not "
      "controlled");
  add(Uncontrolled::Program,
      "the program starts other programs, or one in its own place (system, popen, posix_spawn, exec): what "
      "they do is "
      "not controlled");
  add(Uncontrolled::Errors,
      "more calls failed in one execution than are kept (4,096 errors): in replays those after them are made "
      "again");
  add(Uncontrolled::Namespace,
      "the program loads modules into a namespace of their own (dlmopen), where they have another libc: what "
      "they do "
      "is not controlled");
  add(Uncontrolled::Threads,
      "more threads were started in one execution than slalom can control (1,024): pthread_create() gave "
      "EAGAIN "
      "for the others");
  add(Uncontrolled::OpenMp,
      "the program uses what slalom does not know of OpenMP (detached tasks, more than 256 kinds of tasks, "
      "more than 16,384 iterations that wait for each other, or 8 counters of one): what is reported there "
      "may be wrong");
  add(Uncontrolled::Missing,
      "a thread is joined that was started before main(): executions do not have it, and pthread_join() gave "
      "ESRCH");
  add(Uncontrolled::Signal, "signals come from outside of the program: when they do is not controlled");
  return words;
}

}  // namespace slalom
