// Zygote: a launched target that waits at the entry of main() and forks an execution on each request. Or it
// forks one process that runs the program's set-up, which then forks the executions in its place.
//
// Owns the process, the Channel and the file that receives the executions' standard error. All control passes
// on one core: launch() ties the process to `core`, and wait() ties the calling thread to it as well, since
// waking an idle core costs thirty times as much as switching on a busy one.
//
// The destructor ends everything that the zygote has started. Not for decisions: see program_machine.h.
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

// Remarks about set-up for the user. Shared by all machines of a search, which may run at the same time.
struct SetUpRemarks {
  std::atomic<uint64_t> executions = 0;  // executions that ended
  std::atomic<uint64_t> alone = 0;       // those of them with only one thread
  std::mutex mutex;
  // Why executions begin at main(); empty if they begin after set-up.
  std::string not_shared;
};

std::vector<std::string> in_words(SetUpRemarks& remarks);

struct LaunchOptions {
  std::string library;    // libslalom_preload.so
  int core = 0;           // index among the cores that this process may use
  uint32_t patience = 5;  // seconds that an execution may run or wait without an operation
  // Returns whether the user has interrupted the search; then waits end early. nullptr if it cannot be
  // interrupted.
  bool (*interrupted)() = nullptr;
  enum class Begin : uint8_t { AfterSetUp, AtMain } begin = Begin::AfterSetUp;  // where executions begin
  bool orders_set_up = false;        // the search sees accesses in set-up, as in older versions
  uint64_t max_set_up = 50'000'000;  // limit for operations before a second thread can exist
  // Attached to the first execution; nullptr for none.
  std::shared_ptr<class Debugger> debugger;
  // Collects what executions did that slalom does not control (preload/protocol.h); nullptr for none.
  std::shared_ptr<std::atomic<uint32_t>> uncontrolled;
  // Collects remarks about set-up; nullptr for none.
  std::shared_ptr<SetUpRemarks> remarks;
};

class Zygote {
 public:
  // A piece of the target's address space that comes from a file.
  struct Module {
    std::string path;
    uint64_t begin = 0, end = 0;
    bool user = false;  // not one of the system's libraries
    bool ours = false;  // slalom's own
  };

  static Result<std::unique_ptr<Zygote>> launch(const Program& program, const LaunchOptions& options);
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  preload::Channel& channel() { return *channel_; }
  const std::vector<Module>& modules() const { return modules_; }
  uint32_t uncontrolled() const { return uncontrolled_; }  // the Uncontrolled bits met before main()

  enum class Waited : uint8_t { Stopped, Silent, Asleep, Dead, Interrupted };
  Result<void> fork_execution();
  void begin_set_up();  // in a process of its own; then wait() for Phase::Ready,
  void keep_set_up();   // and call this: executions are then its forks
  void end_set_up();    // ends that process; executions begin at main() again
  bool has_set_up() const { return set_up_ > 0; }
  bool set_up_lives() const;
  // Waits until the target passes control. Silent: it did nothing for `patience` seconds. Asleep: it sleeps
  // in a call that is not controlled and will not go on. Dead: the zygote has ended. Interrupted: the user
  // has interrupted the search, and the target did nothing for a second.
  Waited wait();
  // The call it sleeps in, also after Silent; empty if none.
  const std::string& asleep_in() const { return asleep_in_; }
  void let_run(uint32_t agent);
  void show(uint32_t agent);  // lets a debugger stop in the agent, which then continues to wait
  pid_t execution() const { return channel_->child; }
  preload::Range channel_in_target() const { return channel_range_; }
  // Ends the execution. `agent` is the one that waits for slalom; an invalid index if none does.
  void end_execution(uint32_t agent);
  // Reads memory of the process that waits at main(), or of another one; empty if it cannot be read.
  std::vector<uint8_t> memory(preload::Range range) const { return memory(range, process_); }
  std::vector<uint8_t> memory(preload::Range range, pid_t process) const;
  // The execution's standard output, if the program is judged by it.
  std::string output() const;
  int output_file() const { return output_; }
  bool output_is_full() const;
  std::filesystem::path folder() const { return scratch_ ? scratch_->folder() : "."; }
  std::string errors() const;  // the beginning of the execution's standard error

 private:
  Zygote() = default;
  void request(preload::Request what);
  Result<void> start(const Program& program, const LaunchOptions& options);
  Result<void> wait_for_main(const Program& program);
  Result<void> read_modules(const Program& program, const std::string& library);

  preload::Channel* channel_ = nullptr;
  int errors_ = -1, output_ = -1;
  pid_t process_ = -1;
  pid_t set_up_ = -1;                            // the process that has run set-up; -1 if none
  off_t errors_before_ = 0, output_before_ = 0;  // bytes written by set-up
  int core_ = 0;
  pid_t tied_thread_ = -1;
  uint32_t patience_ = 5;
  bool (*interrupted_)() = nullptr;
  preload::Range channel_range_{};  // address range in the target
  std::string asleep_in_;
  uint32_t uncontrolled_ = 0;
  std::vector<Module> modules_;
  std::optional<Scratch> scratch_;
};

}  // namespace slalom
