#include "base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace slalom {
namespace {

constexpr size_t kMaxChildOutput = size_t{64} << 20;

class Pipe {
 public:
  Pipe() { good_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool good() const { return good_; }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_end(size_t end) {
    if (ends_[end] >= 0) ::close(ends_[end]);
    ends_[end] = -1;
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
  bool good_ = false;
};

std::vector<std::string> merged_environment(const Child& child) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [changed, value] : child.environment) replaced = replaced || changed == name;
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : child.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Reads both pipes until the child has closed them. Drops output beyond the limit.
void collect(Pipe& output, Pipe& errors, ChildOutput& into) {
  const std::array<std::pair<Pipe*, std::string*>, 2> streams = {
      {{&output, &into.output}, {&errors, &into.errors}}};
  while (output.reader() >= 0 || errors.reader() >= 0) {
    std::array<pollfd, 2> waiting = {{{output.reader(), POLLIN, 0}, {errors.reader(), POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      std::array<char, 65536> piece;
      const ssize_t got = ::read(streams[i].first->reader(), piece.data(), piece.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0)
        streams[i].first->close_end(0);
      else if (streams[i].second->size() < kMaxChildOutput)
        streams[i].second->append(piece.data(), static_cast<size_t>(got));
    }
  }
}

}  // namespace

Result<ChildOutput> run_child(const Child& child, const std::string& package) {
  Pipe output;
  Pipe errors;
  if (!output.good() || !errors.good())
    return error("cannot run {}: {}; close some files or raise ulimit -n", child.program,
                 std::strerror(errno));
  std::vector<std::string> arguments = {child.program};
  arguments.insert(arguments.end(), child.arguments.begin(), child.arguments.end());
  std::vector<std::string> environment = merged_environment(child);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.writer(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.writer(), 2);
  if (!child.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, child.directory.c_str());
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, child.program.c_str(), &actions, nullptr,
                                     pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT)
    return error("there is no {} on this machine; install the Debian package {}", child.program, package);
  if (failure != 0) return error("cannot run {}: {}", child.program, std::strerror(failure));

  output.close_end(1);
  errors.close_end(1);
  ChildOutput result;
  collect(output, errors, result);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return error("lost sight of {}: {}", child.program, std::strerror(errno));
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace slalom
