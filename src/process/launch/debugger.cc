#include "process/launch/debugger.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"

namespace slalom {
namespace {

// $rdi is the first argument of a function.
constexpr const char* kScript = R"(set pagination off
set confirm off
set breakpoint pending on
set print thread-events off
break slalom_failed
commands
silent
printf "slalom: %s\n", (char*)$rdi
end
define next-switch
tbreak slalom_switched
continue
end
document next-switch
Run the thread until it is preempted, blocks or ends. The thread that goes on instead is then the current one.
end
)";

}  // namespace

Result<void> Debugger::attach(pid_t target) {
  used_ = true;
  TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make("gdb"));
  const std::filesystem::path ready = folder / "ready";
  const std::filesystem::path script = folder / "commands";
  std::ofstream(script) << kScript << "shell touch " << ready.string() << "\n"
                        << (options_.begin == Options::Begin::Failure ? "continue\n" : "");
  std::vector<std::string> words = {"gdb", "-q", "-p", std::to_string(target), "-x", script.string()};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  gdb_ = fork();
  if (gdb_ < 0) return error("gdb cannot be started: {}", std::strerror(errno));
  if (gdb_ == 0) {
    execvp("gdb", arguments.data());
    _exit(127);
  }
  signal(SIGINT, SIG_IGN);  // gdb handles Ctrl-C
  bool attached = false;
  while (!attached) {
    attached = std::filesystem::exists(ready);
    int status = 0;
    if (!attached && waitpid(gdb_, &status, WNOHANG) == gdb_) {
      gdb_ = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return error("gdb is not installed; install it first");
      return error("gdb ended before it was attached to the program: may it trace processes here?");
    }
    poll(nullptr, 0, 20);
  }
  return {};
}

void Debugger::wait() {
  while (gdb_ > 0 && waitpid(gdb_, nullptr, 0) < 0 && errno == EINTR) {
  }
  gdb_ = -1;
}

}  // namespace slalom
