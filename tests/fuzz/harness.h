// One fuzz harness: a reader of untrusted bytes, and valid inputs to start from. The same file builds with
// libFuzzer and with driver.cc, whose seeded mutations need no special compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace slalom {

std::vector<std::vector<uint8_t>> seed_inputs();

}  // namespace slalom
