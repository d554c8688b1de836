#include "vm/guest/guest_symbols.h"

#include <algorithm>

#include "symbols/btf.h"
#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/boot/image.h"
#include "vm/boot/kernel_cache.h"
#include "vm/memory/mmu.h"

namespace slalom::vm {

bool PcMemory::read(uint64_t address, std::span<uint8_t> out) {
  while (!out.empty()) {
    const uint64_t size = std::min<uint64_t>(out.size(), kPageSize - (address & (kPageSize - 1)));
    Physical physical;
    if (!translate_quietly(pc_.cpu(cpu_), address, physical) || !pc_.ram().read(physical, out.first(size)))
      return false;
    address += size;
    out = out.subspan(size);
  }
  return true;
}

bool PcMemory::write(uint64_t address, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const uint64_t size = std::min<uint64_t>(bytes.size(), kPageSize - (address & (kPageSize - 1)));
    Physical physical;
    if (!translate_quietly(pc_.cpu(cpu_), address, physical) || !pc_.ram().write(physical, bytes.first(size)))
      return false;
    address += size;
    bytes = bytes.subspan(size);
  }
  return true;
}

Result<SymbolTable> guest_symbols(const std::string& kernel, Pc& pc) {
  TRY_ASSIGN(const KernelCache cache, KernelCache::open());
  TRY_ASSIGN(const Kernel found, find_kernel(cache, kernel));
  TRY_ASSIGN(const Image image, read_image(found.vmlinuz));
  TRY_ASSIGN(SymbolTable symbols, read_vmlinux_symbols(image.data));
  const Result<ElfPiece> section = elf_section(image.data, ".BTF");
  if (!section.ok()) return symbols;  // no types: its modules stay nameless
  TRY_ASSIGN(const Btf types, Btf::parse(section->bytes));
  PcMemory memory(pc);
  TRY_ASSIGN(const std::vector<LinuxModule> modules, read_linux_modules(memory, symbols, types));
  return with_modules(symbols, modules);
}

}  // namespace slalom::vm
