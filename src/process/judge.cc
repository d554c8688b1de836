#include "process/judge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "process/launch/descriptor.h"

extern char** environ;

namespace slalom {
namespace {

constexpr size_t kMostShown = 200;       // characters of a line in verdicts
constexpr off_t kMostSaid = 4096;        // bytes of a check's output in verdicts
constexpr uint64_t kMostText = 1 << 20;  // bytes of expected output that a capsule keeps

std::string shown(std::string_view line) {
  return line.size() <= kMostShown ? std::string(line) : fmt::format("{}...", line.substr(0, kMostShown));
}

// Returns the line that begins at `at`, without its line break; empty at the end of the text.
std::optional<std::string_view> line_at(std::string_view text, size_t at) {
  if (at >= text.size()) return std::nullopt;
  return text.substr(at, std::min(text.find('\n', at), text.size()) - at);
}

bool is_utf8(std::string_view text) {
  size_t more = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (more > 0) {
      if ((byte & 0xc0) != 0x80) return false;
      --more;
    } else if (byte >= 0x80) {
      more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
      if (more == 0 || byte > 0xf4) return false;
    }
  }
  return more == 0;
}

// Copies the first `size` bytes of the output to a file of its own.
int copy_of(int file, size_t size) {
  const int copy = memfd_create("slalom-printed", MFD_CLOEXEC);
  off_t from = 0;
  while (copy >= 0 && static_cast<size_t>(from) < size)
    if (sendfile(copy, file, &from, size - static_cast<size_t>(from)) <= 0) break;
  if (copy >= 0) lseek(copy, 0, SEEK_SET);
  return copy;
}

// Returns false if the process has not ended in time.
bool ended_in_time(pid_t process, uint32_t seconds) {
  const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (handle.get() < 0) return true;  // before Linux 5.3: wait without a limit
  pollfd wanted{handle.get(), POLLIN, 0};
  int ready = -1;
  while ((ready = poll(&wanted, 1, static_cast<int>(seconds * 1000))) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

}  // namespace

Result<std::string> read_expected_output(const std::string& file) {
  TRY_ASSIGN(const std::vector<uint8_t> bytes, read_file(file));
  std::string text(bytes.begin(), bytes.end());
  if (text.size() > kMostText || !is_utf8(text))
    return error(
        "--expect-output: {} is {}: the expected output is kept in capsules; write --check 'cmp - {}' "
        "instead",
        file, text.size() > kMostText ? "longer than 1 MB" : "no text in UTF-8", file);
  return text;
}

std::optional<std::string> unexpected(const Program::ExpectedOutput& expected, const std::string& output) {
  if (output == expected.text) return std::nullopt;
  size_t at = 0;
  for (size_t number = 1;; ++number) {
    const std::optional<std::string_view> wanted = line_at(expected.text, at), got = line_at(output, at);
    if (wanted && got && *wanted == *got &&
        at + got->size() < std::min(output.size(), expected.text.size())) {
      at += got->size() + 1;
      continue;
    }
    const std::string first = fmt::format("the output is not that of {}", expected.file);
    if (wanted && got && *wanted == *got)
      return fmt::format("{}\nLine {} ends {} a line break.", first, number,
                         output.size() > expected.text.size() ? "with" : "without");
    if (!got)
      return fmt::format("{}\nIt ends before line {}, which should be \"{}\".", first, number,
                         shown(*wanted));
    if (!wanted)
      return fmt::format("{}\nIt goes on with line {}, \"{}\", where it should end.", first, number,
                         shown(*got));
    return fmt::format("{}\nLine {} is \"{}\", and should be \"{}\".", first, number, shown(*got),
                       shown(*wanted));
  }
}

Result<std::optional<std::string>> run_check(const UserCheck& check) {
  const Descriptor input(copy_of(check.output, check.output_size));
  const Descriptor said(memfd_create("slalom-check", MFD_CLOEXEC));
  if (input.get() < 0 || said.get() < 0) return error("the check cannot be run: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, check.folder.c_str());
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // Ctrl-C is for slalom
  std::string shell = "sh", option = "-c", command = check.command,
              status = fmt::format("SLALOM_STATUS={}", check.status);
  char* arguments[] = {shell.data(), option.data(), command.data(), nullptr};
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
  environment.push_back(status.data());
  environment.push_back(nullptr);
  pid_t process = -1;
  const int trouble = posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (trouble != 0) return error("the check cannot be run: {}", std::strerror(trouble));
  const bool in_time = ended_in_time(process, check.patience);
  if (!in_time) kill(-process, SIGKILL);
  int ended = 0;
  while (waitpid(process, &ended, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return error("the check did not end within {} seconds (--patience): {}", check.patience, check.command);
  std::string words(kMostSaid, '\0');
  const ssize_t got = pread(said.get(), words.data(), words.size(), 0);
  words.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (words.ends_with('\n')) words.pop_back();
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return std::optional<std::string>();
  if (WIFEXITED(ended) && (WEXITSTATUS(ended) == 126 || WEXITSTATUS(ended) == 127))
    return error("the check cannot be run (status {}): {}{}{}", WEXITSTATUS(ended), check.command,
                 words.empty() ? "" : "\n  ", words);
  const std::string how = WIFEXITED(ended) ? fmt::format("exits with {}", WEXITSTATUS(ended))
                                           : fmt::format("is killed by signal {}", WTERMSIG(ended));
  return std::optional(
      fmt::format("the check {}: {}{}{}", how, check.command, words.empty() ? "" : "\n", words));
}

}  // namespace slalom
