// Snapshots: whatever a file holds, either a machine comes out that can be saved, loaded and run, or a
// reason.
#include "base/check.h"
#include "fuzz/harness.h"
#include "unit/vm/tiny_machine.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs() {
  std::vector<std::vector<uint8_t>> seeds;
  for (const uint64_t instructions : {0, 100, 700}) {
    vm::Booted machine{.pc = vm::make_tiny(vm::kWalker, 1), .kernel = "walker", .identity = "0123"};
    machine.pc->run(instructions);
    machine.pc->devices().push_console_input("typed");
    seeds.push_back(*vm::encode_snapshot(machine));
  }
  return seeds;
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  Result<vm::Booted> machine = vm::decode_snapshot({data, size});
  if (!machine.ok()) {
    CHECK(!machine.error().message.empty(), "refused without a reason");
    return 0;
  }
  const Result<std::vector<uint8_t>> again = vm::encode_snapshot(*machine);
  CHECK(again.ok(), "{}", again.ok() ? "" : again.error().message);
  CHECK(vm::decode_snapshot(*again).ok(), "a machine was lost when written again");
  machine->pc->run(200);
  return 0;
}
