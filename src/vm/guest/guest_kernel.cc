#include "vm/guest/guest_kernel.h"

#include <algorithm>

#include "base/little_endian.h"
#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/boot/image.h"
#include "vm/boot/kernel_cache.h"
#include "vm/guest/guest_symbols.h"
#include "vm/memory/mmu.h"

namespace slalom::vm {

Result<GuestKernel> load_guest_kernel(const std::string& kernel) {
  TRY_ASSIGN(const KernelCache cache, KernelCache::open());
  TRY_ASSIGN(const Kernel found, find_kernel(cache, kernel));
  TRY_ASSIGN(const Image image, read_image(found.vmlinuz));
  GuestKernel known;
  TRY_ASSIGN(known.symbols, read_vmlinux_symbols(image.data));
  const Result<ElfPiece> section = elf_section(image.data, ".BTF");
  if (!section.ok() || section->bytes.empty()) return known;
  TRY_ASSIGN(known.types, Btf::parse(section->bytes));
  return known;
}

SymbolTable with_loaded_modules(const GuestKernel& kernel, Pc& pc) {
  if (!kernel.types) return kernel.symbols;
  PcMemory memory(pc);
  const Result<std::vector<LinuxModule>> modules = read_linux_modules(memory, kernel.symbols, *kernel.types);
  return modules.ok() ? with_modules(kernel.symbols, *modules) : kernel.symbols;
}

bool read_quietly(const Cpu& cpu, uint64_t address, std::span<uint8_t> out) {
  while (!out.empty()) {
    const uint64_t size = std::min<uint64_t>(out.size(), kPageSize - (address & (kPageSize - 1)));
    Physical physical;
    if (!translate_quietly(cpu, address, physical) || !cpu.system.ram.read(physical, out.first(size)))
      return false;
    address += size;
    out = out.subspan(size);
  }
  return true;
}

std::optional<uint64_t> read_word(const Cpu& cpu, uint64_t address) {
  uint8_t bytes[8];
  if (!read_quietly(cpu, address, bytes)) return std::nullopt;
  return get_le<uint64_t>(bytes, 0);
}

std::string read_string(const Cpu& cpu, uint64_t address, size_t most) {
  std::string text;
  while (text.size() < most) {
    uint8_t bytes[kPageSize];
    const uint64_t room = kPageSize - (address & (kPageSize - 1));
    const size_t size = std::min<size_t>(most - text.size(), room);
    if (!read_quietly(cpu, address, std::span(bytes, size))) break;
    const uint8_t* const end = std::find(bytes, bytes + size, uint8_t{0});
    text.append(static_cast<const uint8_t*>(bytes), end);
    if (end != bytes + size) break;
    address += size;
  }
  return text;
}

}  // namespace slalom::vm
