// A disk that is full, for tests: a limit of the process on the size of files.
#pragma once

#include <signal.h>
#include <sys/resource.h>

namespace slalom {

// While it lives, a file of this process has at most so many bytes: a write() that passes the limit writes
// what fits, and the next one fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, signal_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  sighandler_t signal_;
  rlimit before_ = {};
};

}  // namespace slalom
