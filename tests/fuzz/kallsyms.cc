// Kernel images: whatever they contain, their symbols are read within them.
#include "symbols/kallsyms.h"

#include "base/check.h"
#include "fuzz/harness.h"
#include "symbols/elf_symbols.h"
#include "unit/kernel_store/kernel_files.h"
#include "unit/symbols/kallsyms_image.h"

namespace slalom {
namespace {

void try_symbols(const Result<SymbolTable>& table) {
  if (!table.ok()) {
    CHECK(!table.error().message.empty(), "refused without a reason");
    return;
  }
  for (const Symbol& symbol : table->symbols()) {
    CHECK(symbol.is_offset || table->at(symbol.address) != nullptr, "{} is not at its address", symbol.name);
    CHECK(!table->named(symbol.name).empty(), "{} is not found by its name", symbol.name);
  }
}

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  for (const KallsymsLayout layout :
       {KallsymsLayout::Old, KallsymsLayout::OldWithNumbers, KallsymsLayout::New, KallsymsLayout::NewFromBase,
        KallsymsLayout::NewFromSelf}) {
    const std::vector<Symbol> symbols = some_kernel_symbols(530, false);
    seeds.push_back(KallsymsImage(symbols, layout, 16).bytes);
    seeds.push_back(vm::make_elf64(0x1000, {{KallsymsImage::kAddress, 0x1000, seeds.back(), 0x10000}}));
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes(data, data + size);
  slalom::try_symbols(slalom::read_kallsyms(bytes, slalom::KallsymsImage::kAddress));
  slalom::try_symbols(slalom::read_vmlinux_symbols(bytes));
  return 0;
}
