#include "vm/snapshot/copy.h"

#include <algorithm>
#include <cstring>

namespace slalom::vm {

Result<Booted> copy_of(const Booted& machine) {
  Pc& from = *machine.pc;
  const Ram& ram = from.ram();
  TRY_ASSIGN(std::unique_ptr<Pc> pc, Pc::make({.cpus = from.cpu_count(), .memory = ram.size()}));
  static constexpr uint8_t kZeros[kPageSize] = {};
  for (uint64_t page = 0; page < ram.pages(); ++page) {
    const uint8_t* data = ram.page_data(page);
    if (std::memcmp(data, kZeros, kPageSize) != 0) pc->ram().write(ram.address_of(page), {data, kPageSize});
  }
  TRY(pc->set_rest(from.rest()));
  return Booted{.pc = std::move(pc), .kernel = machine.kernel, .identity = machine.identity};
}

}  // namespace slalom::vm
