// Kernel images: parses the bytes of a file into segments and their addresses in memory.
//
// Reads Linux bzImage files (and unpacks the vmlinux inside, so that the guest need not), Linux vmlinux
// files, and multiboot 1 kernels (ELF or not). Each may be compressed as a whole. The parser trusts nothing
// in a file: all segments lie within the data. Placement checks later whether they fit into RAM.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

enum class ImageKind {
  LinuxElf,       // entered at the kernel's own entry point
  LinuxUnpacker,  // a bzImage with a compression that slalom does not know: entered at its own unpacking code
  Multiboot,
};

struct ImageSegment {
  Physical address = 0;
  uint64_t offset = 0;       // of the segment's bytes in Image::data
  uint64_t file_size = 0;    // number of bytes there
  uint64_t memory_size = 0;  // bytes beyond file_size are zero
  bool operator==(const ImageSegment&) const = default;
};

// The part of a bzImage's header that a loader needs. A vmlinux has no header; these are the defaults for it.
struct LinuxHeader {
  std::vector<uint8_t> raw;  // starts at offset 0x1f1 of the file; empty for a vmlinux
  uint64_t start = 0x1000000;
  uint64_t needed_memory = 0;              // from `start` on, until the kernel manages memory itself
  uint32_t initrd_end_limit = 0x7fffffff;  // the highest address that an initrd may use
  uint32_t command_line_limit = 2047;      // without the terminating zero
};

struct MultibootHeader {
  static constexpr uint32_t kPageAlign = 1, kMemoryInfo = 2, kVideo = 4, kAddresses = 1 << 16;
  uint32_t flags = 0;
  uint32_t video_mode = 0;  // 0: linear graphics, 1: text
};

struct Image {
  ImageKind kind = ImageKind::LinuxElf;
  std::vector<uint8_t> data;
  std::vector<ImageSegment> segments;
  Physical entry = 0;
  std::string identity;  // "build-id:..." or "xxh3:...": equal for equal kernels
  LinuxHeader linux_header;
  MultibootHeader multiboot_header;

  std::span<const uint8_t> bytes_of(const ImageSegment& segment) const {
    return std::span(data).subspan(segment.offset, segment.file_size);
  }
};

// `limit`: the most bytes that decompression may produce.
Result<Image> parse_image(std::vector<uint8_t> file, uint64_t limit = uint64_t{1} << 30);
Result<Image> read_image(const std::filesystem::path& path);

}  // namespace slalom::vm
