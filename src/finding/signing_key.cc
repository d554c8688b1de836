#include "finding/signing_key.h"

#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace slalom {
namespace {

namespace fs = std::filesystem;

// Part of what is signed, so that the key's signature of a capsule is valid for nothing else.
constexpr std::string_view kPurpose = "slalom capsule";

Error key_trouble(const char* action, const fs::path& path) {
  return error("cannot {} the signing key {}: {}", action, path.string(), std::strerror(errno));
}

// Closes the file at the end.
struct KeyFile {
  int descriptor = -1;
  explicit KeyFile(int number) : descriptor(number) {}
  ~KeyFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
};

Result<SigningKey::Bytes> read_key(const fs::path& path) {
  const KeyFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.descriptor < 0) return key_trouble("read", path);
  struct stat status = {};
  if (::fstat(file.descriptor, &status) != 0) return key_trouble("read", path);
  if (!S_ISREG(status.st_mode))
    return error("the signing key {} is not a regular file: remove it, and slalom makes a new one",
                 path.string());
  if (status.st_uid != ::geteuid())
    return error("the signing key {} belongs to another user (number {}): slalom does not use it",
                 path.string(), status.st_uid);
  if ((status.st_mode & 077) != 0)
    return error(
        "the signing key {} can be read or changed by other users, so they may know it: remove it, and "
        "slalom makes a "
        "new one",
        path.string());
  SigningKey::Bytes bytes;
  if (static_cast<size_t>(status.st_size) != bytes.size() ||
      ::read(file.descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return error("the signing key {} is damaged: remove it, and slalom makes a new one", path.string());
  return bytes;
}

// Makes the folder if it is missing. Refuses a folder of another user (as with sudo), where a key would help
// neither user.
Result<void> make_key_folder(const fs::path& folder) {
  fs::path there = folder;
  struct stat status = {};
  while (::stat(there.c_str(), &status) != 0 && there.has_relative_path()) there = there.parent_path();
  if (status.st_uid != ::geteuid())
    return error("cannot make a signing key in {}: {} belongs to another user", folder.string(),
                 there.string());
  const fs::path above = folder.parent_path();
  std::error_code trouble;
  if (!fs::exists(above, trouble)) fs::create_directories(above, trouble);
  if (trouble || (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST))
    return error("cannot make the folder {} for a signing key: {}", folder.string(),
                 trouble ? trouble.message() : std::strerror(errno));
  return {};
}

// Makes a key file, which gets its name only when it is complete. If another process was first, that
// process's key stays.
Result<void> make_key(const fs::path& path) {
  TRY(make_key_folder(path.parent_path()));
  SigningKey::Bytes bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return key_trouble("make", path);
  std::string temporary = path.string() + ".XXXXXX";
  bool made = false;
  {
    const KeyFile file(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
    if (file.descriptor < 0) return key_trouble("make", path);
    made = ::write(file.descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
           ::fsync(file.descriptor) == 0;
  }
  // Neither call replaces a file. The first also works on file systems without hard links.
  made = made && (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0 ||
                  errno == EEXIST || ::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int why = errno;
  ::unlink(temporary.c_str());
  errno = why;
  if (!made) return key_trouble("make", path);
  return {};
}

}  // namespace

Result<fs::path> SigningKey::path() {
  const auto folder = [](const char* name) {
    const char* value = std::getenv(name);
    // The XDG specification calls relative paths invalid.
    return fs::path(value != nullptr && *value == '/' ? value : "");
  };
  if (const fs::path config = folder("XDG_CONFIG_HOME"); !config.empty())
    return config / "slalom" / "capsule.key";
  if (const fs::path home = folder("HOME"); !home.empty()) return home / ".config" / "slalom" / "capsule.key";
  return error("there is no place for a signing key: set HOME");
}

Result<SigningKey> SigningKey::load() {
  TRY_ASSIGN(const fs::path path, SigningKey::path());
  TRY_ASSIGN(const Bytes bytes, read_key(path));
  return SigningKey(bytes);
}

Result<SigningKey> SigningKey::load_or_make() {
  TRY_ASSIGN(const fs::path path, SigningKey::path());
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 && errno == ENOENT) TRY(make_key(path));
  return load();
}

std::vector<uint8_t> SigningKey::sign(std::span<const uint8_t> contents) const {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, bytes_.size(), bytes_.data());
  hmac_sha256_update(&context, kPurpose.size(), reinterpret_cast<const uint8_t*>(kPurpose.data()));
  hmac_sha256_update(&context, contents.size(), contents.data());
  std::vector<uint8_t> signature(SHA256_DIGEST_SIZE);
  hmac_sha256_digest(&context, signature.size(), signature.data());
  return signature;
}

bool SigningKey::signed_by_it(std::span<const uint8_t> contents, std::span<const uint8_t> signature) const {
  const std::vector<uint8_t> right = sign(contents);
  return signature.size() == right.size() && memeql_sec(signature.data(), right.data(), right.size()) != 0;
}

}  // namespace slalom
