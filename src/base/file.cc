#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace slalom {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string_view advice(int code) {
  switch (code) {
    case ENOENT:
      return "; check the path";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions, or choose another directory";
    case ENOSPC:
    case EDQUOT:
      return "; free some space, or choose another directory";
    default:
      return "";
  }
}

Error system_error(std::string_view action, const std::filesystem::path& path) {
  const int code = errno;
  return error("cannot {} {}: {}{}", action, path.string(), std::strerror(code), advice(code));
}

bool write_all(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns the number of the descriptor that a link in /proc/self/fd stands for.
std::optional<int> own_descriptor(const std::filesystem::path& link) {
  std::error_code trouble;
  const auto folder = std::filesystem::canonical(link.parent_path(), trouble);
  if (trouble || folder != std::filesystem::canonical("/proc/self/fd", trouble)) return std::nullopt;
  const std::string name = link.filename().string();
  int number = -1;
  const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (wrong != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

// The destination of a path that the user gave.
struct Destination {
  enum class Kind : uint8_t {
    File,       // a regular file, or an unused name
    Device,     // or a FIFO
    Descriptor  // of this process
  } kind = Kind::File;
  std::filesystem::path path;
  int descriptor = -1;
};

Result<Destination> destination_of(const std::filesystem::path& path) {
  // The kernel does not follow other users' links in shared folders, so ask it first.
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 && errno != ENOENT && errno != ENOTDIR)
    return system_error("write", path);
  constexpr int kMostLinks = 40;
  std::filesystem::path at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    if (::lstat(at.c_str(), &status) != 0 || S_ISREG(status.st_mode))
      return Destination{Destination::Kind::File, at};
    if (S_ISDIR(status.st_mode))
      return error("cannot write {}: it is a directory; name a file in it", path.string());
    if (!S_ISLNK(status.st_mode)) return Destination{Destination::Kind::Device, at};
    if (const std::optional<int> number = own_descriptor(at))
      return Destination{Destination::Kind::Descriptor, at, *number};
    std::error_code trouble;
    const auto target = std::filesystem::read_symlink(at, trouble);
    if (trouble) break;
    at = at.parent_path() / target;  // an absolute target replaces the whole path
  }
  errno = ELOOP;
  return system_error("write", path);
}

}  // namespace

Result<std::vector<uint8_t>> read_file(const std::filesystem::path& path) {
  // Non-blocking, so that the check below refuses a FIFO given by mistake, instead of waiting for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_error("read", path);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return system_error("read", path);
  if (S_ISDIR(status.st_mode))
    return error("cannot read {}: it is a directory; name a file in it", path.string());
  if (!S_ISREG(status.st_mode)) return error("cannot read {}: it is not a regular file", path.string());
  if (static_cast<uint64_t>(status.st_size) > kMaxFileSize)
    return error("cannot read {}: {} bytes are more than any file of slalom has", path.string(),
                 status.st_size);

  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size));
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path);
    if (got == 0) break;  // the file shrank meanwhile
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

Result<void> write_file(const std::filesystem::path& path, std::span<const uint8_t> bytes) {
  // In the same directory, because rename() works only within one file system.
  std::filesystem::path temporary;
  int fd = -1;
  for (int attempt = 0; fd < 0; ++attempt) {
    temporary = path;
    temporary += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return system_error("write", path);
  }
  Descriptor file(fd);
  if (!write_all(fd, bytes) || ::fsync(fd) != 0 || !file.close() ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error failure = system_error("write", path);
    ::unlink(temporary.c_str());
    return failure;
  }
  // The new name is durable once its directory is. Some file systems cannot sync directories; the data is
  // written anyway.
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
  Descriptor parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.valid()) ::fsync(parent.get());
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  return write_file(path, bytes_of(text));
}

Result<void> write_output(const std::filesystem::path& path, std::span<const uint8_t> bytes) {
  TRY_ASSIGN(const Destination destination, destination_of(path));
  switch (destination.kind) {
    case Destination::Kind::File:
      return write_file(destination.path, bytes);
    case Destination::Kind::Descriptor:
      if (!write_all(destination.descriptor, bytes)) return system_error("write", path);
      return {};
    case Destination::Kind::Device: {
      Descriptor file(::open(destination.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      if (!file.valid() || !write_all(file.get(), bytes) || !file.close()) return system_error("write", path);
      return {};
    }
  }
  return {};
}

Result<void> write_output(const std::filesystem::path& path, std::string_view text) {
  return write_output(path, bytes_of(text));
}

}  // namespace slalom
