#include "process/launch/exec_stop.h"

#include <elf.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>
#include <fstream>

namespace slalom {
namespace {

constexpr uint64_t kRandomWords[] = {0x243f6a8885a308d3, 0x13198a2e03707344};  // 16 bytes

uint64_t address_of_random_bytes(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/auxv", process), std::ios::binary);
  Elf64_auxv_t entry;
  while (file.read(reinterpret_cast<char*>(&entry), sizeof entry))
    if (entry.a_type == AT_RANDOM) return entry.a_un.a_val;
  return 0;
}

}  // namespace

bool ask_for_exec_stop() {
  return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
}

void pass_exec_stop(pid_t child) {
  siginfo_t info = {};
  do {
    // Passes on a signal that came before.
    if (info.si_signo != 0) ptrace(PTRACE_CONT, child, nullptr, info.si_status);
    info = {};
    while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WSTOPPED | WNOWAIT) != 0)
      if (errno != EINTR) return;
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) return;
  } while (info.si_status != SIGTRAP);
  if (uint64_t address = address_of_random_bytes(child); address != 0)
    for (const uint64_t word : kRandomWords) {
      ptrace(PTRACE_POKEDATA, child, address, word);
      address += sizeof word;
    }
  ptrace(PTRACE_DETACH, child, nullptr, nullptr);
}

}  // namespace slalom
