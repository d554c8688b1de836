#include "preload/io/file_identity.h"

#include <string.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr ino_t kFirstNumber = 1 << 20;
constexpr uint32_t kMostFiles = 1024;  // further files keep their real numbers

struct File {
  dev_t device;
  ino_t number;
};
constinit File files[kMostFiles] = {};  // in order of first use
constinit uint32_t file_count = 0;

bool is_new(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec) >=
         runtime().files_since();
}

ino_t number_of(const File& file) {
  for (uint32_t i = 0; i < file_count; ++i)
    if (files[i].device == file.device && files[i].number == file.number) return kFirstNumber + i;
  if (file_count == kMostFiles) return file.number;
  files[file_count] = file;
  return kFirstNumber + file_count++;
}

}  // namespace

int with_stable_identity(int result, struct stat* info) {
  if (result != 0 || !runtime().controls() || !is_new(info->st_ctim)) return result;
  const timespec start = to_clock(CLOCK_REALTIME, 0);
  for (timespec* time : {&info->st_atim, &info->st_mtim, &info->st_ctim})
    if (is_new(*time)) *time = start;
  // Pipes, terminals and the like keep their numbers, because they are not in a folder.
  if (S_ISREG(info->st_mode) || S_ISDIR(info->st_mode) || S_ISLNK(info->st_mode))
    info->st_ino = number_of({info->st_dev, info->st_ino});
  return result;
}

void note_path(const char* path) {
  if (!runtime().controls() || path == nullptr || strncmp(path, "/proc/", 6) != 0) return;
  const char* file = strrchr(path, '/') + 1;
  for (const char* changing : {"stat", "status", "statm", "sched", "schedstat", "io", "smaps", "uptime",
                               "loadavg", "meminfo", "vmstat", "interrupts"})
    if (strcmp(file, changing) == 0) runtime().note_uncontrolled(Uncontrolled::Proc);
}

}  // namespace slalom::preload
