#include "vm/boot/multiboot.h"

#include <algorithm>

#include "base/little_endian.h"
#include "kernel_store/elf_file.h"
#include "vm/boot/placement.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kMultibootMagic = 0x1badb002;
constexpr uint32_t kLoaderMagic = 0x2badb002;
constexpr uint64_t kSearched = 8192;
constexpr uint64_t kAddressLimit = uint64_t{1} << 32;  // the kernel is entered in 32-bit mode
constexpr uint32_t kDemands = 0xffff;                  // flags that a loader must support

// Addresses of the loader's own data.
constexpr Physical kMultibootGdt = 0x1000;
constexpr Physical kInfo = 0x2000;
constexpr uint64_t kInfoRoom = 0x6000;
// The specification defines no stack, but some kernels push before they set up their own.
constexpr Physical kMultibootStackTop = 0x9000;

constexpr uint16_t kMultibootCode = 0x08;
constexpr uint16_t kMultibootData = 0x10;

constexpr uint32_t kInfoMemory = 1, kInfoCommandLine = 4, kInfoModules = 8, kInfoMemoryMap = 1 << 6,
                   kInfoLoaderName = 1 << 9, kInfoFramebuffer = 1 << 12;

Error truncated_multiboot() {
  return error("it is cut short or damaged: its multiboot header names parts that it does not have");
}

// Reads the address fields of a kernel that is no ELF file ("a.out kludge").
Result<MultibootLayout> layout_by_addresses(std::span<const uint8_t> file, uint64_t header_offset) {
  const auto field = [&](uint64_t offset) { return get_le<uint32_t>(file, header_offset + offset); };
  const auto header = field(12), load = field(16), load_end = field(20), bss_end = field(24),
             entry = field(28);
  if (!entry) return truncated_multiboot();
  if (*header < *load || header_offset < *header - *load) return truncated_multiboot();
  const uint64_t start = header_offset - (*header - *load);
  uint64_t size = file.size() - start;
  if (*load_end != 0) {
    if (*load_end < *load || *load_end - *load > size) return truncated_multiboot();
    size = *load_end - *load;
  }
  uint64_t memory = size;
  if (*bss_end != 0) {
    if (*bss_end < *load || *bss_end - *load < size) return truncated_multiboot();
    memory = *bss_end - *load;
  }
  if (memory > kAddressLimit - *load) return truncated_multiboot();
  MultibootLayout layout;
  layout.segments.push_back({*load, start, size, memory});
  layout.entry = *entry;
  return layout;
}

Result<MultibootLayout> layout_by_elf(std::span<const uint8_t> file) {
  TRY_ASSIGN(const ElfFile elf, parse_elf(file));
  if (elf.machine != ElfFile::k386 && elf.machine != ElfFile::kX86_64)
    return error("it is a multiboot kernel for another kind of machine; slalom runs x86 kernels");
  MultibootLayout layout;
  layout.entry = elf.entry;
  for (const ElfSegment& segment : elf.segments) {
    if (segment.type != ElfFile::kLoad || segment.memory_size == 0) continue;
    if (segment.physical_address >= kAddressLimit ||
        segment.memory_size > kAddressLimit - segment.physical_address)
      return error(
          "a segment of it is at physical address {:#x}, beyond the 4 GiB of multiboot; link it with "
          "physical addresses (AT in the linker script)",
          segment.physical_address);
    layout.segments.push_back(
        {segment.physical_address, segment.offset, segment.file_size, segment.memory_size});
    // A kernel linked for high addresses also has a high entry address. It is entered at the physical address
    // of that code.
    const uint64_t distance = elf.entry - segment.virtual_address;
    if (elf.entry >= segment.virtual_address && distance < segment.memory_size)
      layout.entry = segment.physical_address + distance;
  }
  if (layout.segments.empty()) return error("it has nothing to load; is it a kernel?");
  if (layout.entry >= kAddressLimit)
    return error("its entry {:#x} lies in none of its segments", layout.entry);
  return layout;
}

std::vector<uint8_t> multiboot_gdt() {
  std::vector<uint8_t> table;
  append_le<uint64_t>(table, 0);
  append_le<uint64_t>(table, 0x00cf9b000000ffff);  // 32-bit code
  append_le<uint64_t>(table, 0x00cf93000000ffff);  // data
  return table;
}

// Builds the information structure and everything that it points to, in one growing buffer.
class Info {
 public:
  Info() : bytes_(kFixed) {}

  void set(uint64_t offset, uint32_t value) { put_le<uint32_t>(std::span(bytes_), offset, value); }
  void add_flag(uint32_t flag) { flags_ |= flag; }
  uint32_t add(std::span<const uint8_t> more) {
    while (bytes_.size() % 8 != 0) bytes_.push_back(0);
    const uint32_t address = static_cast<uint32_t>(kInfo + bytes_.size());
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return address;
  }
  uint32_t add_text(const std::string& text) {
    std::vector<uint8_t> bytes(text.begin(), text.end());
    bytes.push_back(0);
    return add(bytes);
  }
  std::vector<uint8_t> finish() {
    set(0, flags_);
    return std::move(bytes_);
  }

 private:
  static constexpr size_t kFixed = 116;
  std::vector<uint8_t> bytes_;
  uint32_t flags_ = 0;
};

void add_memory(const Ram& ram, Info& info) {
  info.add_flag(kInfoMemory | kInfoMemoryMap);
  info.set(4, static_cast<uint32_t>(kLowMemoryEnd >> 10));
  info.set(8, static_cast<uint32_t>((ram.low_size() - kHighMemory) >> 10));
  std::vector<uint8_t> entries;
  for (const MemoryRange& range : memory_map(ram)) {
    append_le<uint32_t>(entries, 20);  // size of the rest of the entry
    append_le<uint64_t>(entries, range.begin);
    append_le<uint64_t>(entries, range.end - range.begin);
    append_le<uint32_t>(entries, range.usable ? 1 : 2);
  }
  info.set(44, static_cast<uint32_t>(entries.size()));
  info.set(48, info.add(entries));
}

void add_text_screen(Info& info) {
  info.add_flag(kInfoFramebuffer);
  info.set(88, 0xb8000);
  info.set(96, 160);  // bytes per line
  info.set(100, 80);
  info.set(104, 25);
  info.set(108, 16 | 2 << 8);  // bits per character; EGA text
}

}  // namespace

std::optional<uint64_t> find_multiboot_header(std::span<const uint8_t> file) {
  const std::span<const uint8_t> searched = file.first(std::min<size_t>(file.size(), kSearched));
  for (uint64_t at = 0; at + 12 <= searched.size(); at += 4) {
    if (*get_le<uint32_t>(searched, at) != kMultibootMagic) continue;
    const uint32_t sum =
        kMultibootMagic + *get_le<uint32_t>(searched, at + 4) + *get_le<uint32_t>(searched, at + 8);
    if (sum == 0) return at;
  }
  return std::nullopt;
}

Result<MultibootLayout> multiboot_layout(std::span<const uint8_t> file) {
  const std::optional<uint64_t> at = find_multiboot_header(file);
  if (!at) return error("it has no multiboot header");
  MultibootHeader header{.flags = *get_le<uint32_t>(file, *at + 4)};
  constexpr uint32_t known =
      MultibootHeader::kPageAlign | MultibootHeader::kMemoryInfo | MultibootHeader::kVideo;
  if ((header.flags & kDemands & ~known) != 0)
    return error("its multiboot header demands features that slalom does not have (flags {:#x})",
                 header.flags);
  if ((header.flags & MultibootHeader::kVideo) != 0) {
    const std::optional<uint32_t> mode = get_le<uint32_t>(file, *at + 32);
    if (!mode) return truncated_multiboot();
    header.video_mode = *mode;
    if (*mode != 1)
      return error("its multiboot header asks for a graphics mode; slalom has text mode only (mode_type 1)");
  }
  TRY_ASSIGN(MultibootLayout layout, (header.flags & MultibootHeader::kAddresses) != 0
                                         ? layout_by_addresses(file, *at)
                                         : layout_by_elf(file));
  layout.header = header;
  return layout;
}

Result<EntryState> load_multiboot(Ram& ram, const Image& image, const MultibootOptions& options) {
  CHECK(image.kind == ImageKind::Multiboot, "this is no multiboot kernel");
  if (ram.low_size() <= kHighMemory) return error("a multiboot kernel needs more than 1 MiB of memory");
  Placement placement(ram);
  TRY(placement.reserve("the loader's data", 0, kMultibootStackTop));
  TRY(placement.put("the ACPI tables", kPlatformTables, options.acpi_tables));
  for (const ImageSegment& segment : image.segments)
    TRY(placement.put("the kernel", segment.address, image.bytes_of(segment), segment.memory_size));

  Info info;
  add_memory(ram, info);
  info.add_flag(kInfoCommandLine | kInfoLoaderName);
  info.set(16, info.add_text(options.command_line));
  info.set(64, info.add_text("slalom"));
  if ((image.multiboot_header.flags & MultibootHeader::kVideo) != 0) add_text_screen(info);
  std::vector<uint8_t> list;
  for (const MultibootModule& module : options.modules) {
    TRY_ASSIGN(
        const Physical begin,
        placement.find_high("a module", std::max<uint64_t>(module.bytes.size(), 1), kHighMemory, kLowRamEnd));
    TRY(placement.put("a module", begin, module.bytes, std::max<uint64_t>(module.bytes.size(), 1)));
    append_le<uint32_t>(list, static_cast<uint32_t>(begin));
    append_le<uint32_t>(list, static_cast<uint32_t>(begin + module.bytes.size()));
    append_le<uint32_t>(list, info.add_text(module.command_line));
    append_le<uint32_t>(list, 0);
  }
  info.add_flag(kInfoModules);
  info.set(20, static_cast<uint32_t>(options.modules.size()));
  info.set(24, info.add(list));
  const std::vector<uint8_t> bytes = info.finish();
  if (bytes.size() > kInfoRoom)
    return error("the command lines of kernel and modules have more than {} bytes: shorten them", kInfoRoom);
  Placement low(ram);
  TRY(low.put("the GDT", kMultibootGdt, multiboot_gdt()));
  TRY(low.put("the multiboot information", kInfo, bytes));

  return EntryState{.mode = EntryState::Mode::Protected32,
                    .rip = image.entry,
                    .rsp = kMultibootStackTop,
                    .rax = kLoaderMagic,
                    .rbx = kInfo,
                    .gdt_base = kMultibootGdt,
                    .gdt_limit = static_cast<uint16_t>(multiboot_gdt().size() - 1),
                    .code_selector = kMultibootCode,
                    .data_selector = kMultibootData};
}

}  // namespace slalom::vm
