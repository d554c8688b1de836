#include "vm/boot/image.h"

#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/file.h"
#include "base/little_endian.h"
#include "kernel_store/decompress.h"
#include "kernel_store/elf_file.h"
#include "vm/boot/multiboot.h"

namespace slalom::vm {
namespace {

// Offsets in a bzImage, from the kernel's Documentation/arch/x86/boot.rst.
constexpr uint64_t kSetupSectors = 0x1f1;
constexpr uint64_t kImageBootFlag = 0x1fe;
constexpr uint64_t kHeaderEnd = 0x201;  // end of the header, relative to 0x202
constexpr uint64_t kMagic = 0x202;
constexpr uint64_t kImageProtocol = 0x206;
constexpr uint64_t kInitrdLimit = 0x22c;
constexpr uint64_t kLoadFlags64 = 0x236;
constexpr uint64_t kCommandLineSize = 0x238;
constexpr uint64_t kPayloadOffset = 0x248;
constexpr uint64_t kPreferredAddress = 0x258;
constexpr uint64_t kInitSize = 0x260;
constexpr uint64_t kHeaderLimit = 0x290;  // boot_params has other fields from here on
constexpr uint64_t kEntry64 = 0x200;      // the 64-bit entry point, from the start of the protected-mode part

std::string hash_identity(std::span<const uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("xxh3:{:016x}{:016x}", hash.high64, hash.low64);
}

std::string identity_of(const ElfFile& elf, std::span<const uint8_t> bytes) {
  const std::string id = build_id(elf, bytes);
  return id.empty() ? hash_identity(bytes) : "build-id:" + id;
}

bool is_bzimage(std::span<const uint8_t> file) {
  return get_le<uint16_t>(file, kImageBootFlag) == 0xaa55 && get_le<uint32_t>(file, kMagic) == 0x53726448u;
}

bool names_linux(std::span<const uint8_t> bytes) {
  constexpr std::string_view banner = "Linux version ";
  return std::search(bytes.begin(), bytes.end(),
                     std::boyer_moore_horspool_searcher(banner.begin(), banner.end())) != bytes.end();
}

Result<Image> linux_elf(std::vector<uint8_t> bytes, LinuxHeader header) {
  TRY_ASSIGN(const ElfFile elf, parse_elf(bytes));
  if (!elf.is_64bit || elf.machine != ElfFile::kX86_64)
    return error("it is a Linux kernel for another kind of machine; slalom runs those for x86-64 (amd64)");
  Image image{.kind = ImageKind::LinuxElf, .entry = elf.entry, .linux_header = std::move(header)};
  for (const ElfSegment& segment : elf.segments) {
    if (segment.type != ElfFile::kLoad || segment.memory_size == 0) continue;
    image.segments.push_back(
        {segment.physical_address, segment.offset, segment.file_size, segment.memory_size});
  }
  if (image.segments.empty()) return error("it has nothing to load; is it a kernel?");
  image.identity = identity_of(elf, bytes);
  image.data = std::move(bytes);
  return image;
}

Result<Image> bzimage(std::vector<uint8_t> file, uint64_t limit) {
  const auto truncated = [] { return error("it is cut short or damaged; fetch or build it again"); };
  const std::optional<uint16_t> protocol = get_le<uint16_t>(file, kImageProtocol);
  const std::optional<uint16_t> load_flags = get_le<uint16_t>(file, kLoadFlags64);
  const auto initrd_limit = get_le<uint32_t>(file, kInitrdLimit);
  const auto command_line = get_le<uint32_t>(file, kCommandLineSize);
  const auto preferred = get_le<uint64_t>(file, kPreferredAddress);
  const auto init_size = get_le<uint32_t>(file, kInitSize);
  const auto payload_offset = get_le<uint32_t>(file, kPayloadOffset);
  const auto payload_size = get_le<uint32_t>(file, kPayloadOffset + 4);
  if (!protocol || !init_size) return truncated();
  if (*protocol < 0x20c || (*load_flags & 1) == 0)
    return error(
        "this Linux kernel has no 64-bit entry (boot protocol {}.{:02}); slalom needs one for x86-64 "
        "(amd64) of version 3.8 or later",
        *protocol >> 8, *protocol & 0xff);

  LinuxHeader header;
  const uint64_t header_end = std::min(kMagic + file[kHeaderEnd], kHeaderLimit);
  const auto raw = part_of(file, kSetupSectors, header_end - std::min(header_end, kSetupSectors));
  if (!raw || header_end <= kInitSize) return truncated();
  header.raw.assign(raw->begin(), raw->end());
  header.start = *preferred;
  header.needed_memory = *init_size;
  header.initrd_end_limit = *initrd_limit;
  header.command_line_limit = *command_line;

  const uint64_t sectors = file[kSetupSectors] == 0 ? 4 : file[kSetupSectors];
  const uint64_t code = (sectors + 1) * 512;
  if (code >= file.size()) return truncated();
  const auto payload = part_of(std::span(file).subspan(code), *payload_offset, *payload_size);
  if (!payload) return truncated();
  if (can_unpack(compression_of(*payload))) {
    TRY_ASSIGN(std::vector<uint8_t> unpacked, unpack(*payload, limit));
    return linux_elf(std::move(unpacked), std::move(header));
  }
  Image image{.kind = ImageKind::LinuxUnpacker,
              .entry = *preferred + kEntry64,
              .identity = hash_identity(file),
              .linux_header = std::move(header)};
  const uint64_t code_size = file.size() - code;
  image.segments.push_back({*preferred, code, code_size, code_size});
  image.data = std::move(file);
  return image;
}

Result<Image> multiboot(std::vector<uint8_t> file) {
  TRY_ASSIGN(MultibootLayout layout, multiboot_layout(file));
  Image image{.kind = ImageKind::Multiboot,
              .segments = std::move(layout.segments),
              .entry = layout.entry,
              .multiboot_header = layout.header};
  image.identity = hash_identity(file);
  if (is_elf(file)) {
    TRY_ASSIGN(const ElfFile elf, parse_elf(file));
    image.identity = identity_of(elf, file);
  }
  image.data = std::move(file);
  return image;
}

}  // namespace

Result<Image> parse_image(std::vector<uint8_t> file, uint64_t limit) {
  if (is_bzimage(file)) return bzimage(std::move(file), limit);
  if (can_unpack(compression_of(file))) {
    TRY_ASSIGN(file, unpack(file, limit));
  }
  if (find_multiboot_header(file)) return multiboot(std::move(file));
  if (is_elf(file)) {
    if (names_linux(file)) return linux_elf(std::move(file), LinuxHeader());
    return error(
        "it is an ELF file, but neither a Linux kernel nor one with a multiboot header in its first 8192 "
        "bytes");
  }
  return error("it is no kernel that slalom knows: a Linux bzImage or vmlinux, or a multiboot kernel");
}

Result<Image> read_image(const std::filesystem::path& path) {
  TRY_ASSIGN(std::vector<uint8_t> file, read_file(path));
  Result<Image> image = parse_image(std::move(file));
  if (!image.ok()) return error("cannot boot {}: {}", path.string(), image.error().message);
  return image;
}

}  // namespace slalom::vm
