// CpioArchive: writes cpio archives ("newc"), which Linux unpacks into its first file system.
//
// Device nodes need no privilege, since they are only entries. The same contents give the same bytes: entries
// are sorted, times are zero, and root owns everything.
//
// Not with libarchive: it would replace only the dozen lines that write a header, with other bytes
// (hexadecimal digits in lower case, other inode numbers), which caches and saved searches of machines depend
// on.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

class CpioArchive {
 public:
  // Paths are those in the guest, with or without a leading slash. Parent directories are added
  // automatically. A later entry replaces an earlier one with the same path, except that a directory stays a
  // directory.
  Result<void> add_directory(std::string_view path, uint32_t permissions = 0755);
  Result<void> add_file(std::string_view path, uint32_t permissions, std::vector<uint8_t> bytes);
  Result<void> add_symlink(std::string_view path, std::string_view target);
  Result<void> add_character_device(std::string_view path, uint32_t permissions, uint32_t major,
                                    uint32_t minor);

  bool has(std::string_view path) const;
  std::vector<uint8_t> bytes() const;

 private:
  struct Entry {
    uint32_t mode = 0;  // type and permissions
    std::vector<uint8_t> bytes;
    uint32_t major = 0;
    uint32_t minor = 0;
  };
  Result<void> add(std::string_view path, Entry entry);

  std::map<std::string, Entry> entries_;  // a directory sorts before its contents
};

}  // namespace slalom::vm
