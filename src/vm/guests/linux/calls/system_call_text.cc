#include "vm/guests/linux/calls/system_call_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "inputs/system_calls.h"
#include "vm/cpu/memory/guest_memory.h"
#include "vm/guests/linux/linux_kernel.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostShown = 48;  // of a text or buffer

// How a call's arguments are shown, one letter each: d signed decimal, x hexadecimal, o octal, s a text, b a
// buffer whose size is the next argument.
struct Shape {
  std::string_view name;
  std::string_view arguments;
};

constexpr Shape kShapes[] = {
    {"accept", "dxx"},
    {"access", "so"},
    {"arch_prctl", "xx"},
    {"bind", "dxd"},
    {"brk", "x"},
    {"chdir", "s"},
    {"chmod", "so"},
    {"chown", "sdd"},
    {"clock_gettime", "dx"},
    {"clone", "xxxxx"},
    {"clone3", "xd"},
    {"close", "d"},
    {"connect", "dxd"},
    {"dup", "d"},
    {"dup2", "dd"},
    {"dup3", "ddx"},
    {"epoll_create1", "x"},
    {"epoll_ctl", "dddx"},
    {"epoll_wait", "dxdd"},
    {"eventfd2", "dx"},
    {"execve", "sxx"},
    {"exit", "d"},
    {"exit_group", "d"},
    {"faccessat", "dso"},
    {"fallocate", "dxdd"},
    {"fchdir", "d"},
    {"fchmod", "do"},
    {"fchown", "ddd"},
    {"fcntl", "ddx"},
    {"fdatasync", "d"},
    {"flock", "dx"},
    {"fork", ""},
    {"fstat", "dx"},
    {"fstatfs", "dx"},
    {"fsync", "d"},
    {"ftruncate", "dd"},
    {"futex", "xxdxxd"},
    {"getcwd", "xd"},
    {"getdents64", "dxd"},
    {"getegid", ""},
    {"geteuid", ""},
    {"getgid", ""},
    {"getpgid", "d"},
    {"getpgrp", ""},
    {"getpid", ""},
    {"getppid", ""},
    {"getrandom", "xdx"},
    {"getrlimit", "dx"},
    {"getsid", "d"},
    {"gettid", ""},
    {"getuid", ""},
    {"ioctl", "dxx"},
    {"kill", "dd"},
    {"lchown", "sdd"},
    {"link", "ss"},
    {"listen", "dd"},
    {"lseek", "ddd"},
    {"lstat", "sx"},
    {"madvise", "xdd"},
    {"mkdir", "so"},
    {"mkdirat", "dso"},
    {"mknod", "sox"},
    {"mmap", "xdxxdx"},
    {"mount", "sssxx"},
    {"mprotect", "xdx"},
    {"mremap", "xddxx"},
    {"msync", "xdx"},
    {"munmap", "xd"},
    {"nanosleep", "xx"},
    {"newfstatat", "dsxx"},
    {"open", "sxo"},
    {"openat", "dsxo"},
    {"pause", ""},
    {"pipe", "x"},
    {"pipe2", "xx"},
    {"poll", "xdd"},
    {"prctl", "dxxxx"},
    {"pread64", "dxdd"},
    {"prlimit64", "ddxx"},
    {"pwrite64", "dbdd"},
    {"read", "dxd"},
    {"readlink", "sxd"},
    {"readlinkat", "dsxd"},
    {"readv", "dxd"},
    {"reboot", "xxxx"},
    {"recvfrom", "dxdxxx"},
    {"recvmsg", "dxx"},
    {"rename", "ss"},
    {"renameat", "dsds"},
    {"rmdir", "s"},
    {"rseq", "xdxx"},
    {"rt_sigaction", "dxxd"},
    {"rt_sigprocmask", "dxxd"},
    {"rt_sigreturn", ""},
    {"sched_getaffinity", "ddx"},
    {"sched_setaffinity", "ddx"},
    {"sched_yield", ""},
    {"sendfile", "ddxd"},
    {"sendmsg", "dxx"},
    {"sendto", "dbdxxd"},
    {"set_robust_list", "xd"},
    {"set_tid_address", "x"},
    {"setgid", "d"},
    {"setpgid", "dd"},
    {"setsid", ""},
    {"setsockopt", "dddxd"},
    {"setuid", "d"},
    {"shutdown", "dd"},
    {"socket", "ddd"},
    {"socketpair", "dddx"},
    {"stat", "sx"},
    {"statfs", "sx"},
    {"statx", "dsxxx"},
    {"symlink", "ss"},
    {"sync", ""},
    {"sysinfo", "x"},
    {"tgkill", "ddd"},
    {"truncate", "sd"},
    {"umask", "o"},
    {"umount2", "sx"},
    {"uname", "x"},
    {"unlink", "s"},
    {"unlinkat", "dsx"},
    {"vfork", ""},
    {"wait4", "dxxx"},
    {"write", "dbd"},
    {"writev", "dxd"},
};

std::string quoted(std::string_view bytes, bool more) {
  std::string text = "\"";
  for (const char c : bytes) {
    if (c == '\n')
      text += "\\n";
    else if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (c < ' ' || c > '~')
      text += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    else
      text += c;
  }
  return text + (more ? "\"..." : "\"");
}

std::string bytes_at(const Cpu& cpu, uint64_t address, uint64_t size) {
  std::string bytes(std::min<uint64_t>(size, kMostShown), 0);
  if (!read_all(cpu, address, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
    return fmt::format("{:#x}", address);
  return quoted(bytes, size > bytes.size());
}

std::string text_at(const Cpu& cpu, uint64_t address) {
  uint8_t first;
  if (!read_all(cpu, address, {&first, 1})) return fmt::format("{:#x}", address);
  const std::string text = read_string(cpu, address, kMostShown);
  return quoted(text, text.size() == kMostShown);
}

std::string shown(const Cpu& cpu, char how, uint64_t value, uint64_t next) {
  switch (how) {
    case 's':
      return text_at(cpu, value);
    case 'b':
      return bytes_at(cpu, value, next);
    case 'o':
      return fmt::format("{:#o}", value & 0xffff'ffff);
    case 'd': {
      // The argument may be an int or a long; only the call itself knows.
      const bool small = value <= 0xffff'ffff;
      return fmt::format("{}", small ? static_cast<int32_t>(value) : static_cast<int64_t>(value));
    }
    default:
      return fmt::format("{:#x}", value);
  }
}

}  // namespace

std::string system_call_title(uint64_t number) {
  const std::string_view name =
      number <= kMaxSystemCall ? system_call_name(static_cast<uint32_t>(number)) : std::string_view();
  return name.empty() ? fmt::format("system call {}", number) : std::string(name);
}

std::string system_call_text(const Cpu& cpu, uint64_t number, std::span<const uint64_t, 6> arguments) {
  const std::string name = system_call_title(number);
  const auto* shape = std::ranges::find(kShapes, name, &Shape::name);
  const std::string_view how = shape == std::end(kShapes) ? "xxxxxx" : shape->arguments;
  std::string text = name + "(";
  for (size_t i = 0; i < how.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ",
                        shown(cpu, how[i], arguments[i], i + 1 < 6 ? arguments[i + 1] : 0));
  return text + ")";
}

}  // namespace slalom::vm
