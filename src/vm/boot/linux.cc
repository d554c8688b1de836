#include "vm/boot/linux.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/little_endian.h"
#include "vm/boot/placement.h"
#include "vm/devices/acpi.h"

namespace slalom::vm {
namespace {

// Layout of the first megabyte. The kernel also puts its trampoline for other CPUs there, near the end.
constexpr Physical kGdt = 0x8000;
constexpr Physical kStackTop = 0x10000;
constexpr Physical kBootParams = 0x10000;
constexpr Physical kCommandLine = 0x20000;
constexpr uint64_t kCommandLineRoom = 0x8000;
constexpr Physical kSetupData = 0x28000;
constexpr Physical kPageTables = 0x30000;
static_assert(kAcpiBase == kPlatformTables && kAcpiSize <= kPlatformTablesSize);

// Offsets in boot_params, and values for its fields.
constexpr uint64_t kBootParamsSize = 4096;
constexpr uint64_t kAcpiRsdp = 0x70;
constexpr uint64_t kE820Count = 0x1e8;
constexpr uint64_t kSetupHeader = 0x1f1;
constexpr uint64_t kBootFlag = 0x1fe;
constexpr uint64_t kHeaderMagic = 0x202;
constexpr uint64_t kProtocol = 0x206;
constexpr uint64_t kLoaderType = 0x210;
constexpr uint64_t kLoadFlags = 0x211;
constexpr uint64_t kInitrdAddress = 0x218;
constexpr uint64_t kInitrdSize = 0x21c;
constexpr uint64_t kCommandLinePointer = 0x228;
constexpr uint64_t kSetupDataPointer = 0x250;
constexpr uint64_t kE820Table = 0x2d0;
constexpr uint8_t kUnknownLoader = 0xff;
constexpr uint8_t kLoadedHigh = 1;
constexpr uint32_t kRngSeed = 9;  // SETUP_RNG_SEED

// The selectors that the boot protocol requires.
constexpr uint16_t kCodeSelector = 0x10;
constexpr uint16_t kDataSelector = 0x18;

std::vector<uint8_t> gdt() {
  std::vector<uint8_t> table;
  append_le<uint64_t>(table, 0);
  append_le<uint64_t>(table, 0);
  append_le<uint64_t>(table, 0x00af9b000000ffff);  // 64-bit code
  append_le<uint64_t>(table, 0x00cf93000000ffff);  // data
  return table;
}

// Maps 4 GiB one to one, with pages of 2 MiB.
std::vector<uint8_t> page_tables() {
  constexpr uint64_t present_writable = 3;
  constexpr uint64_t large = 0x80;
  constexpr uint64_t directories = 4;
  std::vector<uint8_t> tables((2 + directories) * kPageSize);
  const std::span<uint8_t> all(tables);
  put_le<uint64_t>(all, 0, (kPageTables + kPageSize) | present_writable);
  for (uint64_t i = 0; i < directories; ++i)
    put_le<uint64_t>(all, kPageSize + 8 * i, (kPageTables + (2 + i) * kPageSize) | present_writable);
  for (uint64_t i = 0; i < directories * 512; ++i)
    put_le<uint64_t>(all, 2 * kPageSize + 8 * i, i << 21 | present_writable | large);
  return tables;
}

std::vector<uint8_t> rng_seed(uint64_t seed) {
  constexpr uint32_t words = 4;
  std::vector<uint8_t> data;
  append_le<uint64_t>(data, 0);  // no further entry
  append_le<uint32_t>(data, kRngSeed);
  append_le<uint32_t>(data, words * 8);
  for (uint64_t i = 0; i < words; ++i) append_le<uint64_t>(data, combine(seed, i));
  return data;
}

std::vector<uint8_t> boot_params(const Ram& ram, const Image& image, const LinuxOptions& options,
                                 Physical initrd) {
  std::vector<uint8_t> params(kBootParamsSize);
  const std::span<uint8_t> all(params);
  const std::vector<uint8_t>& header = image.linux_header.raw;
  CHECK(header.size() <= kE820Table - kSetupHeader, "header of {} bytes", header.size());
  std::copy(header.begin(), header.end(), params.begin() + kSetupHeader);
  if (header.empty()) {  // a vmlinux: use what the header of its bzImage would contain
    put_le<uint16_t>(all, kBootFlag, 0xaa55);
    put_le<uint32_t>(all, kHeaderMagic, 0x53726448);
    put_le<uint16_t>(all, kProtocol, 0x020f);
  }
  params[kLoaderType] = kUnknownLoader;
  params[kLoadFlags] |= kLoadedHigh;
  put_le<uint32_t>(all, kInitrdAddress, static_cast<uint32_t>(initrd));
  put_le<uint32_t>(all, kInitrdSize, static_cast<uint32_t>(options.initrd.size()));
  put_le<uint32_t>(all, kCommandLinePointer, kCommandLine);
  put_le<uint64_t>(all, kSetupDataPointer, kSetupData);
  if (!options.acpi_tables.empty()) put_le<uint64_t>(all, kAcpiRsdp, kPlatformTables);
  const std::vector<MemoryRange> map = memory_map(ram);
  params[kE820Count] = static_cast<uint8_t>(map.size());
  for (size_t i = 0; i < map.size(); ++i) {
    put_le<uint64_t>(all, kE820Table + 20 * i, map[i].begin);
    put_le<uint64_t>(all, kE820Table + 20 * i + 8, map[i].end - map[i].begin);
    put_le<uint32_t>(all, kE820Table + 20 * i + 16, map[i].usable ? 1 : 2);
  }
  return params;
}

Result<void> place_kernel(Placement& placement, const Image& image) {
  Physical end = 0;
  for (const ImageSegment& segment : image.segments) {
    TRY(placement.put("the kernel", segment.address, image.bytes_of(segment), segment.memory_size));
    end = std::max(end, segment.address + segment.memory_size);
  }
  // Behind its segments the kernel uses memory (brk, early page tables) before it reads any memory map.
  const Physical needed = image.linux_header.start + image.linux_header.needed_memory;
  if (needed < image.linux_header.start) return error("the kernel's header is damaged (its size in memory)");
  if (needed > end) TRY(placement.reserve("the kernel", end, needed - end));
  return {};
}

}  // namespace

std::string linux_command_line(uint64_t tsc_khz, const std::string& append) {
  // The options: time comes only from the TSC, with a given rate instead of a measured one. The self tests of
  // the crypto code and initialisation for tracing only, which are most of a boot, are skipped. Random
  // numbers come only from the seed. Addresses are the same in each boot. After a panic the machine stops
  // instead of looping.
  std::string line = fmt::format(
      "console=ttyS0 tsc_early_khz={} lpj={} tsc=reliable no_timer_check nokaslr cryptomgr.notests reboot=t "
      "panic=-1 "
      "quiet random.trust_cpu=off random.trust_bootloader=on mitigations=off rodata=off audit=0 lsm=none "
      "init_on_alloc=0 "
      "initcall_blacklist=jent_mod_init,trace_eval_init,trace_eval_sync,ftrace_check_for_weak_functions",
      tsc_khz, tsc_khz * 4);
  if (!append.empty()) line += " " + append;
  return line;
}

Result<EntryState> load_linux(Ram& ram, const Image& image, const LinuxOptions& options) {
  CHECK(image.kind != ImageKind::Multiboot, "this is no Linux kernel");
  const LinuxHeader& header = image.linux_header;
  const uint64_t limit = std::min<uint64_t>(header.command_line_limit, kCommandLineRoom - 1);
  if (options.command_line.size() > limit)
    return error("the kernel's command line has {} characters, and this kernel takes {}: shorten --append",
                 options.command_line.size(), limit);
  if (options.command_line.find('\0') != std::string::npos)
    return error("the kernel's command line must not hold a zero byte");
  if (options.acpi_tables.size() > kPlatformTablesSize)
    return error("the ACPI tables have {} bytes, and there is room for {}", options.acpi_tables.size(),
                 kPlatformTablesSize);
  if (ram.low_size() <= kHighMemory) return error("Linux needs more memory: give at least --memory 64M");

  Placement placement(ram);
  // The boot data is placed below, without Placement.
  TRY(placement.reserve("the boot data", 0, kHighMemory));
  TRY(place_kernel(placement, image));
  Physical initrd = 0;
  if (!options.initrd.empty()) {
    const Physical end = std::min<Physical>(Physical{header.initrd_end_limit} + 1, kLowRamEnd);
    TRY_ASSIGN(initrd, placement.find_high("the initrd", options.initrd.size(), kHighMemory, end));
    TRY(placement.put("the initrd", initrd, options.initrd));
  }
  std::vector<uint8_t> command_line(options.command_line.begin(), options.command_line.end());
  command_line.push_back(0);

  Placement low(ram);
  TRY(low.put("the GDT", kGdt, gdt()));
  TRY(low.put("boot_params", kBootParams, boot_params(ram, image, options, initrd)));
  TRY(low.put("the command line", kCommandLine, command_line));
  TRY(low.put("the random seed", kSetupData, rng_seed(options.seed)));
  TRY(low.put("the page tables", kPageTables, page_tables()));
  TRY(low.put("the ACPI tables", kPlatformTables, options.acpi_tables));

  return EntryState{.mode = EntryState::Mode::Long64,
                    .rip = image.entry,
                    .rsp = kStackTop,
                    .rsi = kBootParams,
                    .cr3 = kPageTables,
                    .gdt_base = kGdt,
                    .gdt_limit = static_cast<uint16_t>(gdt().size() - 1),
                    .code_selector = kCodeSelector,
                    .data_selector = kDataSelector};
}

}  // namespace slalom::vm
