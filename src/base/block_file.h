// Files that are written and read in blocks, for contents that may be larger than memory.
//
// Such a file starts with the header of a container (base/container.h) whose encoding is "blocks". Blocks
// follow, each compressed and with a checksum of its own. The contents must show which block is the last one.
// A file that was cut off or damaged is readable up to the last whole block before the damage.
// Neither side holds more than one block in memory. Not for files that must be replaced atomically: the
// writer writes to the path itself, so that an interrupted writer leaves what it has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/container.h"
#include "base/result.h"

namespace slalom {

inline constexpr size_t kMaxBlock = size_t{64} << 20;  // bytes of a block's contents
// Bytes 0-3 stored size, 4-7 size of the contents, 8 type, 9 encoding (0 stored, 1 zstd), 10-11 zero, 12-15
// the block's number, 16-23 checksum of bytes 0-15 and the stored bytes.
inline constexpr size_t kBlockHeader = 24;

// Returns a whole block, compressed if that makes it smaller.
std::vector<uint8_t> pack_block(uint8_t type, uint32_t number, std::span<const uint8_t> contents);

// Errors are kept until close() returns them; after the first one, nothing is written.
class BlockWriter {
 public:
  static Result<BlockWriter> create(const std::filesystem::path& path, FileKind kind);
  void write(uint8_t type, std::span<const uint8_t> contents);
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  bool failed() const { return !failure_.empty(); }
  Result<void> close();

 private:
  BlockWriter(std::filesystem::path path, std::ofstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  std::ofstream file_;
  std::string failure_;
  uint32_t number_ = 0;
};

class BlockReader {
 public:
  struct Block {
    uint8_t type = 0;
    std::span<const uint8_t> contents;  // valid until the next call
  };

  // The next byte of `file` must be the first one after the container's header.
  explicit BlockReader(std::istream& file) : file_(file) {}

  // Returns the next block; nothing at the end of the file, and where it is damaged.
  std::optional<Block> next();
  // Says why there is no next block, as a clause: "it was cut off at byte 64"; empty if nothing is damaged.
  const std::string& damage() const { return damage_; }
  bool at_end() { return file_.peek() == std::istream::traits_type::eof(); }
  uint64_t position() const { return position_; }  // bytes of the file that were read

 private:
  std::optional<Block> stop(std::string damage);

  std::istream& file_;
  std::vector<uint8_t> stored_, contents_;
  std::string damage_;
  uint64_t position_ = kContainerHeader;
  uint32_t number_ = 0;
};

}  // namespace slalom
