#include "preload/processes/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "preload/runtime/raw.h"

namespace slalom::preload {
namespace {

// Returns the parent of a process, given the name of its folder in /proc; 0 if unknown. In the file, the
// state and the parent follow the process's name, which is in brackets and may hold any character.
long parent_of(const char* pid) {
  char text[512];
  snprintf(text, sizeof text, "/proc/%s/stat", pid);
  const long file = raw_syscall(SYS_open, reinterpret_cast<long>(text), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const long size = raw_syscall(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
  raw_syscall(SYS_close, file);
  text[size > 0 ? size : 0] = 0;
  const char* end = strrchr(text, ')');
  return end == nullptr || end + 4 > text + size ? 0 : atol(end + 4);
}

// Does not use the heap, since every execution must find it unchanged.
bool kill_children() {
  const long us = raw_syscall(SYS_getpid);
  const long folder =
      raw_syscall(SYS_open, reinterpret_cast<long>("/proc"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  bool any = false;
  alignas(dirent64) char entries[4096];
  long size = 0;
  while ((size = raw_syscall(SYS_getdents64, folder, reinterpret_cast<long>(entries), sizeof entries)) > 0)
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const long pid = atol(entry->d_name);
      if (pid <= 1 || parent_of(entry->d_name) != us) continue;
      any = true;
      raw_syscall(SYS_kill, pid, SIGKILL);
    }
  raw_syscall(SYS_close, folder);
  return any;
}

long reap(int options) {
  return raw_syscall(SYS_wait4, -1, 0, options, 0);
}

}  // namespace

bool adopt_orphans() {
  return reap(WNOHANG) == -ECHILD && raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1) == 0;
}

// The children of a killed process become this process's children, hence the loop.
void end_orphans() {
  for (;;) {
    const long reaped = reap(WNOHANG);
    if (reaped > 0) continue;
    if (reaped < 0 || !kill_children()) return;
    reap(0);
  }
}

}  // namespace slalom::preload
