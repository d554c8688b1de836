// Writes archives in the form that Linux unpacks into its first file system: cpio, "newc".
//
// Needs no privilege for device nodes, since they are only entries. The same contents give the same bytes:
// entries are sorted, times are zero, everything belongs to root.
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
  // Paths are those of the guest, with or without a slash in front. Directories above them come by
  // themselves. What is added again replaces what was there, except that a directory stays one.
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

  std::map<std::string, Entry> entries_;  // a parent sorts before what is in it
};

}  // namespace slalom::vm
