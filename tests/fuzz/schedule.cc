#include "fuzz/payload.h"
#include "trace/files/schedule_file.h"
#include "unit/trace/random_values.h"

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs() {
  return encoded_seeds(random_schedule);
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  fuzz_payload<Schedule>(FileKind::Schedule, {data, size}, parse_schedule, [](const Schedule& schedule) {
    for (const Switch& change : schedule.switches) CHECK(!change.to.path().empty());
  });
  return 0;
}
