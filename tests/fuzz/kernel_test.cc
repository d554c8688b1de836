// Kernel tests: whatever the file, its lists of calls and their images contain, they are refused with a
// reason or can be run; and an image that is accepted is the one that is made again.
#include "vm/scenario/kernel_test.h"

#include "base/check.h"
#include "fuzz/harness.h"
#include "inputs/image.h"
#include "vm/scenario/template.h"

namespace slalom {
namespace {

constexpr std::string_view kCalls =
    "pipe2(&p, O_NONBLOCK)\nfd = open(\"/tmp/a\\x01\", O_RDWR | O_CREAT, 0644)\nb = buf(5000)\n"
    "writev(fd + 1, {ptr b + 8, u64 4, ptr {u16be 80, text(4, \"lo\")}, i32 p[1], zero(4)}, 2)\n"
    "store(u16, b + 4, load(i8, p)); read(p.u64[3], b, sizeof(b) - 1)\n";

void try_calls(const CallProgram& program) {
  const std::vector<uint8_t> image = encode_image(program);
  const Result<CallProgram> again = decode_image(image);
  CHECK(again.ok() && again->steps == program.steps && again->data == program.data, "{}",
        again.ok() ? "another program" : again.error().message);
  const Result<CallProgram> told = parse_calls(to_text(program), "text");
  CHECK(told.ok(), "{}", told.ok() ? "" : told.error().message);
  CHECK(encode_image(*told) == image, "its text says something else:\n{}", to_text(program));
}

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  const std::string test = vm::kernel_test_template("seed");
  const std::vector<uint8_t> image = encode_image(*parse_calls(kCalls, "seed"));
  return {{test.begin(), test.end()}, {kCalls.begin(), kCalls.end()}, image};
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto refused = [](const auto& result) {
    if (!result.ok()) CHECK(!result.error().message.empty(), "refused without a reason");
    return !result.ok();
  };
  if (const auto test = slalom::vm::parse_kernel_test(text, "x.toml"); !refused(test))
    for (const auto& flow : test->flows) slalom::try_calls(flow.calls);
  if (const auto calls = slalom::parse_calls(text, "x.toml"); !refused(calls)) slalom::try_calls(*calls);
  if (const auto program = slalom::decode_image({data, size}); !refused(program))
    CHECK(slalom::encode_image(*program) == std::vector<uint8_t>(data, data + size), "another image");
  return 0;
}
