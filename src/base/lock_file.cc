#include "base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace slalom {

Result<std::optional<LockFile>> LockFile::try_lock(const std::filesystem::path& file) {
  const std::filesystem::path path = file.string() + ".lock";
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return error("cannot write {}: {}", path.string(), std::strerror(errno));
    LockFile lock({}, fd);  // without a path: not yet ours to remove
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return std::optional<LockFile>();
      return error("cannot lock {}: {}", path.string(), std::strerror(errno));
    }
    // The process that held the lock before may have removed the file after this process opened it.
    struct stat opened {
    }, named{};
    if (::fstat(fd, &opened) != 0 || ::stat(path.c_str(), &named) != 0 || opened.st_ino != named.st_ino)
      continue;
    lock.path_ = path;
    return std::optional<LockFile>(std::move(lock));
  }
}

LockFile::LockFile(LockFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), fd_(std::exchange(other.fd_, -1)) {}

LockFile::~LockFile() {
  if (fd_ < 0) return;
  if (!path_.empty()) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace slalom
