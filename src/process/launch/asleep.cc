#include "process/launch/asleep.h"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace slalom {
namespace {

// Calls that wait; `limited` if they may have a time limit.
constexpr struct {
  long number;
  const char* name;
  bool limited;
} kCalls[] = {
    {SYS_read, "read", false},
    {SYS_readv, "readv", false},
    {SYS_write, "write", false},
    {SYS_writev, "writev", false},
    {SYS_open, "open", false},
    {SYS_openat, "open", false},
    {SYS_ioctl, "ioctl", false},
    {SYS_fcntl, "fcntl", false},
    {SYS_flock, "flock", false},
    {SYS_wait4, "waitpid", false},
    {SYS_waitid, "waitid", false},
    {SYS_connect, "connect", false},
    {SYS_accept, "accept", false},
    {SYS_accept4, "accept", false},
    {SYS_sendto, "send", false},
    {SYS_sendmsg, "sendmsg", false},
    {SYS_sendmmsg, "sendmmsg", false},
    {SYS_sendfile, "sendfile", false},
    {SYS_recvfrom, "recv", false},
    {SYS_recvmsg, "recvmsg", false},
    {SYS_recvmmsg, "recvmmsg", true},
    {SYS_splice, "splice", false},
    {SYS_tee, "tee", false},
    {SYS_vmsplice, "vmsplice", false},
    {SYS_msgsnd, "msgsnd", false},
    {SYS_msgrcv, "msgrcv", false},
    {SYS_semop, "semop", false},
    {SYS_semtimedop, "semop", false},
    {SYS_mq_timedsend, "mq_send", false},
    {SYS_mq_timedreceive, "mq_receive", false},
    {SYS_pause, "pause", false},
    {SYS_rt_sigsuspend, "sigsuspend", false},
    {SYS_rt_sigtimedwait, "sigwait", false},
    {SYS_futex, "for a lock inside a library (of a stream, perhaps) that another thread holds", false},
    {SYS_poll, "poll", true},
    {SYS_ppoll, "ppoll", true},
    {SYS_select, "select", true},
    {SYS_pselect6, "pselect", true},
    {SYS_epoll_wait, "epoll_wait", true},
    {SYS_epoll_pwait, "epoll_pwait", true},
    {SYS_nanosleep, "nanosleep", true},
    {SYS_clock_nanosleep, "clock_nanosleep", true},
};

std::string read_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool sleeps(const std::string& stat) {  // the state follows the process's name, which is in brackets
  const size_t end = stat.rfind(')');
  return end != std::string::npos && stat.size() > end + 2 && stat[end + 2] == 'S';
}

// Returns the file of the code that made the call; empty if none. The last word in /proc/.../syscall is the
// program counter.
std::string module_of(pid_t process, const std::string& call) {
  const size_t last = call.rfind(' ');
  if (last == std::string::npos) return {};
  const unsigned long long pc = std::strtoull(call.c_str() + last, nullptr, 16);
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) != 2 || pc < begin || pc >= end) continue;
    const size_t name = line.rfind('/');
    return name == std::string::npos ? "" : line.substr(name + 1);
  }
  return {};
}

// Describes a wait on a futex. Some libraries wait without libc, as libgomp does
// (preload/openmp/inline_calls.h), so preloading cannot intercept them.
std::string futex_in_words(const char* of_libc, const std::string& module) {
  if (module.empty() || module.starts_with("libc.") || module.starts_with("libc-") ||
      module.starts_with("ld-"))
    return of_libc;
  return fmt::format("for another thread in {}, by a system call of its own instead of libc's", module);
}

}  // namespace

std::optional<Sleeper> find_sleeper(pid_t process, preload::Range channel) {
  std::optional<Sleeper> found;
  std::error_code error;
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", process), error);
  if (error) return std::nullopt;
  for (auto thread = threads; thread != std::filesystem::directory_iterator(); thread.increment(error)) {
    if (error) return std::nullopt;
    const std::string call = read_line(thread->path() / "syscall");
    long number = -1;
    unsigned long long first = 0;
    if (std::sscanf(call.c_str(), "%ld %llx", &number, &first) != 2 || number < 0) return std::nullopt;
    if (number == SYS_futex && first >= channel.begin && first < channel.end) continue;  // waits for its turn
    if (found || !sleeps(read_line(thread->path() / "stat"))) return std::nullopt;
    found.emplace(Sleeper{thread->path().filename().string() + " " + call,
                          fmt::format("in system call {}", number), false});
    for (const auto& known : kCalls) {
      if (known.number != number) continue;
      found->what = number == SYS_futex ? futex_in_words(known.name, module_of(process, call))
                                        : fmt::format("in {}()", known.name);
      found->limited = known.limited;
    }
  }
  return found;
}

}  // namespace slalom
