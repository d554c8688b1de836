// Set-up: the part of the program before a second agent can exist. One process runs it once, and executions
// are forks of that process.
//
// A fork does not copy all state. Before the program makes something that executions would share (a pipe, a
// file that it writes, a shared memory mapping) or lack (a timer, a file lock), its executions begin, and the
// rest of set-up is a part of each. Each execution reopens the regular files that are open for reading, at
// the same position. Calls that are not interposed may still have made other open or shared things. If this
// process finds any at the end of set-up, it ends, and slalom starts executions at main() instead.
#include "preload/launch/set_up.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/processes/orphans.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/kernel_waits.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostFirst = 64;
constexpr uint32_t kMostFiles = 64;
constexpr size_t kMostPath = 512;

struct File {
  int descriptor;
  dev_t device;
  ino_t inode;
};
constinit File first[kMostFirst] = {};
constinit uint32_t first_count = 0;

// Files that are open for reading.
constinit struct {
  File file;
  long flags, descriptor_flags, position;
  char path[kMostPath];
} files[kMostFiles] = {};
constinit uint32_t file_count = 0;

bool is_same(const File& a, const struct stat& b) {
  return a.device == b.st_dev && a.inode == b.st_ino;
}

long raw_fstat(int descriptor, struct stat& info) {
  return raw_syscall(SYS_fstat, descriptor, reinterpret_cast<long>(&info));
}

// Calls `visit` for each open descriptor until it returns false. Returns whether all were visited.
template <typename Visit>
bool visit_descriptors(Visit visit) {
  const long folder =
      raw_syscall(SYS_open, reinterpret_cast<long>("/proc/self/fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  bool all = true;
  alignas(dirent64) char entries[4096];
  long size = 0;
  while (all &&
         (size = raw_syscall(SYS_getdents64, folder, reinterpret_cast<long>(entries), sizeof entries)) > 0)
    for (long at = 0; at < size && all;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const int descriptor = atoi(entry->d_name);
      if (entry->d_name[0] != '.' && descriptor != folder) all = visit(descriptor);
    }
  raw_syscall(SYS_close, folder);
  return all;
}

// Returns whether the device has no state (position or data) through which processes could affect each other.
bool is_plain_device(const struct stat& info) {
  constexpr unsigned kMemoryDevices = 1;  // major number of null, zero, full, random ...
  return S_ISCHR(info.st_mode) && major(info.st_rdev) == kMemoryDevices;
}

// Notes a descriptor that executions can reopen. Returns false if executions would share it; `why` then names
// it.
bool keep(int descriptor, char (&why)[kMostPath]) {
  struct stat info = {};
  if (raw_fstat(descriptor, info) != 0 || is_plain_device(info)) return true;
  for (uint32_t i = 0; i < first_count; ++i)
    if (is_same(first[i], info)) return true;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long length =
      raw_syscall(SYS_readlink, reinterpret_cast<long>(link), reinterpret_cast<long>(why), sizeof why - 1);
  why[length > 0 ? length : 0] = 0;
  const long flags = raw_syscall(SYS_fcntl, descriptor, F_GETFL);
  const bool is_file = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
  if (!is_file || (flags & O_ACCMODE) != O_RDONLY || strncmp(why, "/proc/", 6) == 0) return false;
  for (uint32_t i = 0; i < file_count; ++i)
    if (is_same(files[i].file, info)) return false;  // it may share the position
  if (file_count == kMostFiles) return false;
  auto& file = files[file_count++];
  file.file = {descriptor, info.st_dev, info.st_ino};
  file.flags = flags;
  file.descriptor_flags = raw_syscall(SYS_fcntl, descriptor, F_GETFD);
  file.position = raw_syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
  memcpy(file.path, why, sizeof why);
  return file.position >= 0;
}

// Reopens each file in an execution.
void reopen_files() {
  for (uint32_t i = 0; i < file_count; ++i) {
    const auto& file = files[i];
    const long opened = raw_syscall(SYS_open, reinterpret_cast<long>(file.path), file.flags | O_CLOEXEC);
    if (opened >= 0) {
      raw_syscall(SYS_dup3, opened, file.file.descriptor,
                  (file.descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
      raw_syscall(SYS_close, opened);
    }
    raw_syscall(SYS_lseek, file.file.descriptor, file.position, SEEK_SET);
  }
}

// Returns whether there is writable memory shared with other processes, besides slalom's own.
bool shares_memory(char (&why)[kMostPath]) {
  const long maps = raw_syscall(SYS_open, reinterpret_cast<long>("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (maps < 0) return true;
  bool shares = false;
  char line[kMostPath];
  size_t length = 0;
  char text[4096];
  long size = 0;
  while (!shares && (size = raw_syscall(SYS_read, maps, reinterpret_cast<long>(text), sizeof text)) > 0)
    for (long i = 0; i < size && !shares; ++i) {
      if (text[i] != '\n') {
        if (length < sizeof line - 1) line[length++] = text[i];
        continue;
      }
      line[length] = 0;
      length = 0;
      const char* rights = strchr(line, ' ');
      if (rights == nullptr || rights[2] != 'w' || rights[4] != 's') continue;
      const auto begin = static_cast<uint64_t>(strtoull(line, nullptr, 16));
      if (strstr(line, "/memfd:slalom-channel") != nullptr || is_left_behind(begin)) continue;
      shares = true;
      memcpy(why, line, sizeof why);
    }
  raw_syscall(SYS_close, maps);
  return shares;
}

// Not inlined, because the data that it leaves on the stack differs from process to process.
[[gnu::noinline]] void list_first_descriptors() {
  visit_descriptors([](int descriptor) {
    struct stat info = {};
    if (raw_fstat(descriptor, info) == 0 && first_count < kMostFirst)
      first[first_count++] = {descriptor, info.st_dev, info.st_ino};
    return true;
  });
}

// Bytes of stack that the functions below leave untouched, because the program may read there.
constexpr size_t kStackGap = 256 << 10;

}  // namespace

void note_first_descriptors() {
  const void* room = __builtin_alloca(kStackGap);
  asm volatile("" ::"r"(room));
  list_first_descriptors();
}

void Runtime::fork_after_set_up() {
  forks_after_set_up_ = false;
  read_stores(channel_->record_count, false);  // executions have records of their own
  on_ = false;                                 // the libc functions called below are interposed
  char why[kMostPath] = "";
  if (!visit_descriptors([&](int descriptor) { return keep(descriptor, why); }) || shares_memory(why)) {
    snprintf(channel_->message, sizeof channel_->message, "%s", why);
    end_process();
  }
  channel_->set_up_calls = me().calls;
  const bool adopts = adopt_orphans();
  tell_parent(Phase::Ready);
  fork_executions(adopts);
  reopen_files();
  forget_shared_signals();  // of the execution before
  on_ = true;
  Slot& here = slot(self());
  const OpKind op = here.op;
  const uint64_t object = here.object, pc = here.pc;
  here.op = OpKind::GoOn;
  here.object = here.pc = 0;
  stop(ChoiceKind::Start, 0);
  here.op = op;
  here.object = object;
  here.pc = pc;
}

// Leaves the same stack contents whether this process forks or is an execution that began at main().
void Runtime::begin_executions() {
  begins_later_ = false;
  if (forks_after_set_up_) {
    const void* room = __builtin_alloca(kStackGap);
    asm volatile("" ::"r"(room));
    fork_after_set_up();
  }
  clear_stack();
}

void Runtime::leave_set_up() {
  begin_executions_here();
  in_set_up_ = false;
  channel_->set_up_steps = channel_->steps;
  channel_->max_steps = channel_->steps + channel_->max_after_set_up;
}

}  // namespace slalom::preload
