#include "cli/kernel/kernel_debug.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <set>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "symbols/symbol_file.h"
#include "targets/kernel_test.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/gdb/failure_place.h"
#include "vm/gdb/server.h"
#include "vm/replay/scheduled_run.h"

namespace slalom {
namespace {

// Executions are short, so close checkpoints make every step back a short one.
constexpr uint64_t kCheckpointEvery = 200'000;
constexpr const char* kPipe =
    "-slalom-pipe-";  // separates a gdb command from a program; "|" may occur in a path

std::string quoted(const std::filesystem::path& path) {
  std::string text = "\"";
  for (const char c : path.string()) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

class DebugSession {
 public:
  DebugSession(KernelReplay& replay, const KernelDebugOptions& options, TemporaryFolder folder)
      : replay_(replay),
        options_(options),
        run_(*replay.machine, replay.course),
        commands_(folder / "commands"),
        symbols_(folder / "kernel"),
        folder_(std::move(folder)) {}

  Result<void> run(const Verdict& verdict) {
    if (!run_.leads_to_the_same_end())
      return error("going through the schedule once more led to another state: please report this");
    TRY_ASSIGN(vm::GdbServer server, vm::GdbServer::listen(0));
    const auto between = [&] { return server.stop_requested() || interrupted(); };
    vm::FailurePlace place{.stop = {.kind = vm::DebugStop::Kind::Step},
                           .text = "at the start of the schedule"};
    // Before gdb has connected, no one can ask for a stop.
    bool connected = false;
    vm::Debugger debugger(
        run_, {.checkpoint_every = kCheckpointEvery, .between = [&] { return connected && between(); }});
    if (options_.begin == KernelDebugOptions::Begin::Failure)
      place = vm::go_to_failure(debugger, replay_.course, verdict, replay_.test.names->symbols());
    connected = true;
    vm::GdbStub stub(debugger, place.stop);
    TRY(write_commands(server.port(), place));
    TRY(start_gdb());
    if (gdb_ < 0) {
      std::cerr << fmt::format(
          "gdb is not installed here. Start one that can reach 127.0.0.1:{} and these files: gdb -x {}\n",
          server.port(), commands_.string());
      watch_interrupt();
    }
    server.serve(stub, [&] { return gdb_ < 0 ? interrupted() : gdb_has_ended(); });
    while (gdb_ > 0 && !gdb_has_ended()) usleep(20'000);
    return {};
  }

 private:
  Result<void> write_commands(uint16_t port, const vm::FailurePlace& place) {
    std::string script = "set pagination off\nset confirm off\nset print thread-events off\n";
    std::string kernel, modules;
    std::set<std::string> with_file;
    for (const DebugFile& file : replay_.test.debug_files) {
      // gdb cannot quote a newline in a name, and would run the text after it as a command.
      if (file.path.string().find('\n') != std::string::npos ||
          file.path.string().find(kPipe) != std::string::npos)
        continue;
      if (file.sections.empty()) kernel = fmt::format("file {}\n", quoted(file.path));
      const auto text = file.sections.find(".text");
      if (text == file.sections.end()) continue;
      with_file.insert(file.path.stem().string());
      // gdb's messages about it are not interesting.
      modules += fmt::format("pipe -d {} add-symbol-file {} {:#x}", kPipe, quoted(file.path), text->second);
      for (const auto& [name, address] : file.sections)
        if (name != ".text") modules += fmt::format(" -s {} {:#x}", name, address);
      modules += fmt::format(" {} cat > /dev/null\n", kPipe);
    }
    if (kernel.empty()) {
      TRY(write_symbol_file(with_file));
      kernel = fmt::format("file {}\n", quoted(symbols_));
    }
    script += kernel + modules;
    if (!replay_.test.folder.empty()) script += fmt::format("directory {}\n", quoted(replay_.test.folder));
    script += fmt::format("target remote 127.0.0.1:{}\n", port);
    script += fmt::format("echo slalom: CPU {}, {}\\n\nx/i $pc\n", place.stop.cpu, place.text);
    return write_file(commands_, script);
  }

  Result<void> write_symbol_file(const std::set<std::string>& without) {
    std::vector<Symbol> known;
    for (const Symbol& symbol : replay_.test.names->symbols().symbols())
      if (!without.contains(symbol.module)) known.push_back(symbol);
    std::vector<UnwindRow> rows;
    if (replay_.test.kernel != nullptr && replay_.test.kernel->types) {
      vm::CpuMemory memory(run_.pc().cpu(0));
      rows = read_orc(memory, replay_.test.kernel->symbols, *replay_.test.kernel->types);
    }
    return write_file(symbols_, make_symbol_file(known, rows));
  }

  Result<void> start_gdb() {
    std::vector<std::string> words = {"gdb", "-q", "-nx", "-x", commands_.string()};
    if (!options_.commands.empty()) words.emplace_back("-batch");
    for (const std::string& command : options_.commands) {
      words.emplace_back("-ex");
      words.push_back(command);
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int alive[2];  // closed by a successful exec
    if (pipe2(alive, O_CLOEXEC) != 0) return error("gdb cannot be started: {}", std::strerror(errno));
    gdb_ = fork();
    if (gdb_ == 0) {
      execvp("gdb", arguments.data());
      const char failed = 1;
      (void)!write(alive[1], &failed, 1);
      _exit(127);
    }
    close(alive[1]);
    char failed = 0;
    const bool started = gdb_ > 0 && read(alive[0], &failed, 1) == 0;
    close(alive[0]);
    if (!started) {
      if (gdb_ > 0) waitpid(gdb_, nullptr, 0);
      gdb_ = -1;
      return {};
    }
    signal(SIGINT, SIG_IGN);  // gdb handles Ctrl-C
    return {};
  }

  bool gdb_has_ended() {
    if (gdb_ > 0 && waitpid(gdb_, nullptr, WNOHANG) == gdb_) gdb_ = 0;
    return gdb_ == 0;
  }

  KernelReplay& replay_;
  const KernelDebugOptions& options_;
  vm::ScheduledRun run_;
  std::filesystem::path commands_, symbols_;
  TemporaryFolder folder_;
  pid_t gdb_ = -1;  // 0 if it has ended
};

}  // namespace

Result<Exit> debug_kernel(const Finding& finding, const KernelDebugOptions& options) {
  TRY_ASSIGN(const std::unique_ptr<KernelReplay> replay,
             replay_kernel(finding, finding.policy, open_options()));
  TRY_ASSIGN(TemporaryFolder folder, TemporaryFolder::make("gdb"));
  DebugSession session(*replay, options, std::move(folder));
  TRY(session.run(replay->replay.verdict.value_or(finding.verdict)));
  std::cout << (replay->replay.same() ? "the same again" : "NOT the same again") << "\n";
  return replay->replay.same() ? Exit::Findings : Exit::Clean;
}

}  // namespace slalom
