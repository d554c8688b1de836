// Toy programs: whatever TOML and code a file has, it is refused with a reason or compiled.
#include "toy/toy_file.h"

#include <string_view>

#include "base/check.h"
#include "fuzz/harness.h"

namespace slalom {
namespace {

constexpr std::string_view kProgram = R"toml(name = "seed"
about = "A bit of everything."
[params]
n = 2
[shared]
x = { init = 0, atomic = true }
a = { size = "n + 1", init = "n * 2" }
[sync]
m = "mutex"
c = "condvar"
s = { kind = "semaphore", count = "n" }
[[thread]]
name = "t"
copies = "n"
code = """
for i in 0..n { a[i] = -(a[i] + 1) * 2 % 3 }
lock m
while x == 0 && !(id > 1) || n < 3 { wait c m }
if cas(x, 0, 1) { note "first" } else if x == 2 { yield } else { goto out }
unlock m; signal c
out: assert x != 7 "seven"
"""
[[interrupt]]
name = "irq"
on = "t#0"
code = "x = fetch_add(x, 1)"
[final]
check = "x >= 0"
message = "negative"
[expect]
kinds = ["deadlock"]
)toml";

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  return {{kProgram.begin(), kProgram.end()}};
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace slalom;
  const Result<ToyProgram> program = parse_toy({reinterpret_cast<const char*>(data), size}, "seed.toml");
  if (!program.ok()) CHECK(program.error().message.starts_with("seed.toml"), "{}", program.error().message);
  return 0;
}
