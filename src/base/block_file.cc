#include "base/block_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/check.h"
#include "base/little_endian.h"

namespace slalom {
namespace {

constexpr int kBlockLevel = 1;  // of zstd: the target waits while a block is compressed
constexpr size_t kBlockChecksumAt = 16;
enum BlockEncoding : uint8_t { kStoredBlock = 0, kZstdBlock = 1 };

uint64_t block_checksum(std::span<const uint8_t> header, std::span<const uint8_t> stored) {
  return checksum(header.first(kBlockChecksumAt), stored);
}

// Returns the number of bytes read, fewer than wanted only at the end of the file.
size_t read_up_to(std::istream& file, std::span<uint8_t> bytes) {
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return static_cast<size_t>(file.gcount());
}

}  // namespace

std::vector<uint8_t> pack_block(uint8_t type, uint32_t number, std::span<const uint8_t> contents) {
  CHECK(contents.size() <= kMaxBlock, "a block of {} bytes", contents.size());
  std::vector<uint8_t> block(kBlockHeader + std::max(ZSTD_compressBound(contents.size()), contents.size()));
  size_t size = ZSTD_compress(block.data() + kBlockHeader, block.size() - kBlockHeader, contents.data(),
                              contents.size(), kBlockLevel);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // nothing else can go wrong if there is room
  const bool smaller = size < contents.size();
  if (!smaller) {
    std::ranges::copy(contents, block.begin() + kBlockHeader);
    size = contents.size();
  }
  block.resize(kBlockHeader + size);
  const std::span<uint8_t> bytes(block);
  put_le(bytes, 0, static_cast<uint32_t>(size));
  put_le(bytes, 4, static_cast<uint32_t>(contents.size()));
  block[8] = type;
  block[9] = smaller ? kZstdBlock : kStoredBlock;
  put_le(bytes, 12, number);
  put_le(bytes, kBlockChecksumAt, block_checksum(bytes, bytes.subspan(kBlockHeader)));
  return block;
}

Result<BlockWriter> BlockWriter::create(const std::filesystem::path& path, FileKind kind) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const std::vector<uint8_t> header = block_file_header(kind);
  file.write(reinterpret_cast<const char*>(header.data()), static_cast<std::streamsize>(header.size()));
  if (!file) return error("cannot write {}: choose another path, or check its permissions", path.string());
  return BlockWriter(path, std::move(file));
}

void BlockWriter::write(uint8_t type, std::span<const uint8_t> contents) {
  if (failed()) return;
  const std::vector<uint8_t> block = pack_block(type, number_++, contents);
  file_.write(reinterpret_cast<const char*>(block.data()), static_cast<std::streamsize>(block.size()));
  // A process that is killed leaves all whole blocks.
  if (!file_.flush()) fail(fmt::format("cannot write {}: is the disk full?", path_.string()));
}

Result<void> BlockWriter::close() {
  if (!failed()) {
    file_.close();
    if (!file_) fail(fmt::format("cannot write {}: is the disk full?", path_.string()));
  }
  if (failed()) return error("{}", failure_);
  return {};
}

std::optional<BlockReader::Block> BlockReader::stop(std::string damage) {
  damage_ = std::move(damage);
  return std::nullopt;
}

std::optional<BlockReader::Block> BlockReader::next() {
  if (!damage_.empty()) return std::nullopt;
  std::array<uint8_t, kBlockHeader> header{};
  if (read_up_to(file_, header) != header.size())
    return stop(fmt::format("it was cut off at byte {}", position_));
  const auto stored_size = *get_le<uint32_t>(header, 0), size = *get_le<uint32_t>(header, 4);
  const auto damaged = [&] { return stop(fmt::format("it is corrupted at byte {}", position_)); };
  // The checksum is not known to be right before the block has been read, so the sizes are checked first.
  if (size > kMaxBlock || stored_size > size || *get_le<uint32_t>(header, 12) != number_) return damaged();
  stored_.resize(stored_size);
  if (read_up_to(file_, stored_) != stored_size)
    return stop(fmt::format("it was cut off at byte {}", position_));
  if (*get_le<uint64_t>(header, kBlockChecksumAt) != block_checksum(header, stored_)) return damaged();
  Block block{header[8], stored_};
  if (header[9] == kZstdBlock) {
    contents_.resize(size);
    const size_t result = ZSTD_decompress(contents_.data(), size, stored_.data(), stored_size);
    if (ZSTD_isError(result) != 0 || result != size) return damaged();
    block.contents = contents_;
  } else if (header[9] != kStoredBlock || size != stored_size) {
    return damaged();
  }
  ++number_;
  position_ += kBlockHeader + stored_size;
  return block;
}

}  // namespace slalom
