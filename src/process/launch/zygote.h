// Zygote: a launched target that waits at the entry of main() and forks an execution whenever it is asked.
// Or it forks one process that runs the program's set-up, and then forks the executions in its place.
//
// Owns the process, the Channel and the file that takes what executions write to standard error. The whole
// hand-over happens on one core: launch() ties the process to `core`, and wait() ties the calling thread to
// it as well, since waking an idle core costs thirty times as much as switching on a busy one.
//
// When it is destroyed nothing that it started is left. Not for deciding anything: see program_machine.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "preload/protocol.h"
#include "process/launch/program.h"
#include "process/launch/scratch.h"

namespace slalom {

// What is remarkable about set-up, for the user. Of all machines of a search, which may run at the same time.
struct SetUpRemarks {
  std::atomic<uint64_t> executions = 0;  // that came to their end,
  std::atomic<uint64_t> alone = 0;       // of these, with one thread only
  std::mutex mutex;
  std::string not_shared;  // why executions begin at main(); empty: they do not
};

std::vector<std::string> in_words(SetUpRemarks& remarks);

struct LaunchOptions {
  std::string library;              // libslalom_preload.so
  int core = 0;                     // of those that this process may use
  uint32_t patience = 5;            // seconds that an execution may run without an operation
  bool (*interrupted)() = nullptr;  // the user has had enough: no patience any more
  enum class Begin : uint8_t { AfterSetUp, AtMain } begin = Begin::AfterSetUp;  // where executions do
  bool orders_set_up = false;        // the search sees accesses in set-up, as it once did
  uint64_t max_set_up = 50'000'000;  // operations before a second thread can exist
  // If there is one, it is attached to the first execution.
  std::shared_ptr<class Debugger> debugger;
  // If there is one, it collects what executions did that slalom does not control (preload/protocol.h).
  std::shared_ptr<std::atomic<uint32_t>> uncontrolled;
  // If there is one, it collects what is remarkable about set-up.
  std::shared_ptr<SetUpRemarks> remarks;
};

class Zygote {
 public:
  // A piece of the target's address space that comes from a file.
  struct Module {
    std::string path;
    uint64_t begin = 0, end = 0;
    bool user = false;  // not of the system's libraries
    bool ours = false;  // slalom's own
  };

  static Result<std::unique_ptr<Zygote>> launch(const Program& program, const LaunchOptions& options);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  preload::Channel& channel() { return *channel_; }
  const std::vector<Module>& modules() const { return modules_; }
  uint32_t uncontrolled() const { return uncontrolled_; }  // what it met before main()

  enum class Waited : uint8_t { Stopped, Silent, Asleep, Dead, Interrupted };
  Result<void> fork_execution();
  void begin_set_up();  // in a process of its own: wait() for Phase::Ready,
  void keep_set_up();   // then executions are its forks,
  void end_set_up();    // until it is ended
  bool has_set_up() const { return set_up_ > 0; }
  bool set_up_lives() const;
  // Until the target hands over. Silent: it has done nothing for `patience` seconds. Asleep: nor will it,
  // since it sleeps in a call that is not controlled. Dead: the zygote is gone. Interrupted: it has done
  // nothing for a second, and nobody waits for it any more.
  Waited wait();
  const std::string& asleep_in() const { return asleep_in_; }  // that call; also when Silent, if there is one
  void let_run(uint32_t agent);
  void show(uint32_t agent);  // to a debugger; the agent goes on waiting
  pid_t execution() const { return channel_->child; }
  // Ends the execution, in which `agent` (or nobody) waits for its turn.
  void end_execution(uint32_t agent);
  // Of the process that waits at main(), or of another one; empty: it cannot be read.
  std::vector<uint8_t> memory(preload::Range range) const { return memory(range, process_); }
  std::vector<uint8_t> memory(preload::Range range, pid_t process) const;
  std::string output() const;  // what it wrote to standard output, if the program is judged by that
  int output_file() const { return output_; }
  bool output_is_full() const;
  std::filesystem::path folder() const { return scratch_ ? scratch_->folder() : "."; }
  std::string errors() const;  // what the execution wrote to standard error, at least the beginning

 private:
  Zygote() = default;
  void request(preload::Request what);
  Result<void> start(const Program& program, const LaunchOptions& options);
  Result<void> wait_for_main(const Program& program);
  Result<void> read_modules(const Program& program, const std::string& library);

  preload::Channel* channel_ = nullptr;
  int errors_ = -1, output_ = -1;
  pid_t process_ = -1;
  pid_t set_up_ = -1;                            // the process that has run set-up; else none
  off_t errors_before_ = 0, output_before_ = 0;  // what that has written
  int core_ = 0;
  pid_t tied_thread_ = -1;
  uint32_t patience_ = 5;
  bool (*interrupted_)() = nullptr;
  preload::Range channel_range_{};  // in the target
  std::string asleep_in_;
  uint32_t uncontrolled_ = 0;
  std::vector<Module> modules_;
  std::optional<Scratch> scratch_;
};

}  // namespace slalom
