// The symbols of the kernel that runs in a machine, its loaded modules included.
#pragma once

#include <string>

#include "base/result.h"
#include "symbols/guest_memory.h"
#include "symbols/symbol_table.h"
#include "vm/pc.h"

namespace slalom::vm {

// Memory by the virtual addresses of one CPU, RAM only. The machine must stand still.
class PcMemory final : public GuestMemory {
 public:
  explicit PcMemory(Pc& pc, unsigned cpu = 0) : pc_(pc), cpu_(cpu) {}
  bool read(uint64_t address, std::span<uint8_t> out) override;
  bool write(uint64_t address, std::span<const uint8_t> bytes);

 private:
  Pc& pc_;
  unsigned cpu_;
};

// `kernel`: as BootOptions names it. Takes about 0.2 s.
Result<SymbolTable> guest_symbols(const std::string& kernel, Pc& pc);

}  // namespace slalom::vm
