#include "vm/boot/cpio.h"

#include <sys/stat.h>

#include <cstdint>

namespace slalom::vm {
namespace {

constexpr size_t kMaxPath = 4095;  // the kernel's PATH_MAX without the terminating zero
constexpr size_t kBlock = 512;

// Returns the path without needless slashes and "." parts; "" if it is empty, too long, or contains "..".
std::string normal_path(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == "..") return {};
    if (part.empty() || part == ".") continue;
    if (!result.empty()) result += '/';
    result += part;
  }
  if (result.find('\0') != std::string::npos || result.size() > kMaxPath) return {};
  return result;
}

void pad(std::vector<uint8_t>& bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
}

}  // namespace

Result<void> CpioArchive::add(std::string_view path, Entry entry) {
  const std::string name = normal_path(path);
  if (name.empty()) return error("\"{}\" is no path for a file in the guest", path);
  if (entry.bytes.size() > UINT32_MAX)
    return error("{} has {} bytes; an initramfs holds files of less than 4 GiB", name, entry.bytes.size());
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string parent = name.substr(0, slash);
    const auto [found, added] = entries_.try_emplace(parent, Entry{.mode = S_IFDIR | 0755});
    if (!added && !S_ISDIR(found->second.mode))
      return error("{} cannot be in the guest's {}, which is no directory there", name, parent);
  }
  const auto found = entries_.find(name);
  if (found != entries_.end() && S_ISDIR(found->second.mode) != S_ISDIR(entry.mode))
    return error("{} cannot be a directory and a file in the guest", name);
  entries_[name] = std::move(entry);
  return {};
}

Result<void> CpioArchive::add_directory(std::string_view path, uint32_t permissions) {
  return add(path, {.mode = S_IFDIR | (permissions & 07777)});
}

Result<void> CpioArchive::add_file(std::string_view path, uint32_t permissions, std::vector<uint8_t> bytes) {
  return add(path, {.mode = S_IFREG | (permissions & 07777), .bytes = std::move(bytes)});
}

Result<void> CpioArchive::add_symlink(std::string_view path, std::string_view target) {
  if (target.empty() || target.size() > kMaxPath) return error("\"{}\" has no target to link to", path);
  return add(path, {.mode = S_IFLNK | 0777, .bytes = {target.begin(), target.end()}});
}

Result<void> CpioArchive::add_character_device(std::string_view path, uint32_t permissions, uint32_t major,
                                               uint32_t minor) {
  return add(path, {.mode = S_IFCHR | (permissions & 07777), .major = major, .minor = minor});
}

bool CpioArchive::has(std::string_view path) const {
  return entries_.contains(normal_path(path));
}

std::vector<uint8_t> CpioArchive::bytes() const {
  std::vector<uint8_t> out;
  uint32_t inode = 0;
  const auto write = [&](const std::string& name, const Entry& entry, uint32_t links) {
    const std::string header =
        fmt::format("070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                    inode++, entry.mode, 0 /* user */, 0 /* group */, links, 0 /* time */, entry.bytes.size(),
                    0, 0 /* device */, entry.major, entry.minor, name.size() + 1, 0 /* checksum */);
    out.insert(out.end(), header.begin(), header.end());
    out.insert(out.end(), name.begin(), name.end());
    out.push_back(0);
    pad(out, 4);
    out.insert(out.end(), entry.bytes.begin(), entry.bytes.end());
    pad(out, 4);
  };
  for (const auto& [name, entry] : entries_) write(name, entry, S_ISDIR(entry.mode) ? 2 : 1);
  inode = 0;
  write("TRAILER!!!", Entry(), 1);
  pad(out, kBlock);
  return out;
}

}  // namespace slalom::vm
