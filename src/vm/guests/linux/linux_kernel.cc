#include "vm/guests/linux/linux_kernel.h"

#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/boot/image.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {

Result<GuestKernel> load_guest_kernel(const std::string& kernel) {
  TRY_ASSIGN(const KernelCache cache, KernelCache::open());
  TRY_ASSIGN(const Kernel found, find_kernel(cache, kernel));
  TRY_ASSIGN(const Image image, read_image(found.vmlinuz));
  GuestKernel known{.files = found, .identity = image.identity};
  TRY_ASSIGN(known.symbols, read_vmlinux_symbols(image.data));
  const Result<ElfPiece> section = elf_section(image.data, ".BTF");
  if (!section.ok() || section->bytes.empty()) return known;
  TRY_ASSIGN(known.types, Btf::parse(section->bytes));
  return known;
}

SymbolTable with_loaded_modules(const GuestKernel& kernel, Pc& pc) {
  if (!kernel.types) return kernel.symbols;
  CpuMemory memory(pc.cpu(0));
  const Result<std::vector<LinuxModule>> modules = read_linux_modules(memory, kernel.symbols, *kernel.types);
  return modules.ok() ? with_modules(kernel.symbols, *modules) : kernel.symbols;
}

}  // namespace slalom::vm
