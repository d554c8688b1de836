#include "fuzz/payload.h"
#include "trace/files/trace_file.h"
#include "unit/trace/random_values.h"

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs() {
  return encoded_seeds(random_trace);
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  fuzz_payload<TraceLog>(FileKind::Trace, {data, size}, parse_trace, [](const TraceLog& log) {
    for (const Event& event : log.events()) CHECK(!name(event.op).empty());
    for (const Access& access : log.accesses()) CHECK(!name(access.op()).empty());
    TraceLog copy;
    log.replay_into(copy);
    CHECK(encoded(copy) == encoded(log), "a replayed trace differs");
  });
  return 0;
}
