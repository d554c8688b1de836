#include "finding/capsule.h"

#include <nlohmann/json.hpp>

#include "finding/finding_json.h"
#include "fuzz/payload.h"
#include "unit/finding/random_finding.h"

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs() {
  return encoded_seeds(random_finding);
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  fuzz_payload<Finding>(FileKind::Capsule, {data, size}, parse_capsule, [](const Finding& finding) {
    const std::string text = json_text(finding_json(finding, "capsule.slalom"));
    CHECK(nlohmann::json::accept(text), "not JSON: {}", text);
  });
  return 0;
}
