// A fuzzer for any compiler: mutates a harness's seeds, the same way in every run.
//
//   fuzz_<name>                       what ctest runs
//   fuzz_<name> ITERATIONS [SEED]     more, or others
//   fuzz_<name> --corpus DIRECTORY    writes the seeds there, for libFuzzer to start from
//   fuzz_<name> --run FILE...         these inputs only
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/rng.h"
#include "fuzz/harness.h"

namespace slalom {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kIterations = 10'000;
constexpr size_t kMaxSize = 1 << 16;

Bytes random_bytes(Rng& rng, uint64_t most) {
  Bytes bytes(rng.below(most + 1));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
  return bytes;
}

// A part of `bytes`, as iterators: maybe empty, maybe all of it.
auto random_part(Rng& rng, const Bytes& bytes) {
  const uint64_t first = rng.below(bytes.size() + 1);
  const uint64_t length = rng.below(bytes.size() - first + 1);
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(first);
  return std::pair(begin, begin + static_cast<ptrdiff_t>(length));
}

void insert_at_random(Rng& rng, Bytes& bytes, const Bytes& addition) {
  const auto at = bytes.begin() + static_cast<ptrdiff_t>(rng.below(bytes.size() + 1));
  bytes.insert(at, addition.begin(), addition.end());
}

void mutate(Rng& rng, Bytes& bytes, const std::vector<Bytes>& seeds) {
  switch (rng.below(8)) {
    case 0:  // flip a bit
      if (!bytes.empty()) bytes[rng.below(bytes.size())] ^= static_cast<uint8_t>(1u << rng.below(8));
      break;
    case 1:  // replace a byte
      if (!bytes.empty()) bytes[rng.below(bytes.size())] = static_cast<uint8_t>(rng.next());
      break;
    case 2:  // cut the end off
      bytes.resize(rng.below(bytes.size() + 1));
      break;
    case 3: {  // leave a part out
      const auto [begin, end] = random_part(rng, bytes);
      bytes.erase(begin, end);
      break;
    }
    case 4: {  // repeat a part
      const auto [begin, end] = random_part(rng, bytes);
      insert_at_random(rng, bytes, Bytes(begin, end));
      break;
    }
    case 5: {  // splice: go on with the end of another seed
      const Bytes& other = seeds[rng.below(seeds.size())];
      bytes.resize(rng.below(bytes.size() + 1));
      bytes.insert(bytes.end(), other.begin() + static_cast<ptrdiff_t>(rng.below(other.size() + 1)),
                   other.end());
      break;
    }
    case 6:
      insert_at_random(rng, bytes, random_bytes(rng, 16));
      break;
    default:  // the longest of numbers, or one that is too long
      insert_at_random(rng, bytes, Bytes(rng.below(12), 0xff));
      break;
  }
  if (bytes.size() > kMaxSize) bytes.resize(kMaxSize);
}

void run(const Bytes& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void run_mutations(uint64_t iterations, uint64_t seed) {
  const std::vector<Bytes> seeds = seed_inputs();
  for (const Bytes& bytes : seeds) run(bytes);
  for (uint64_t i = 0; i < iterations; ++i) {
    Rng rng(seed, i);
    Bytes bytes = rng.below(20) == 0 ? random_bytes(rng, 200) : seeds[rng.below(seeds.size())];
    for (uint64_t mutations = 1 + rng.below(6); mutations > 0; --mutations) mutate(rng, bytes, seeds);
    try {
      run(bytes);
    } catch (const InternalError& trouble) {
      CHECK(false, "iteration {} of seed {}: {}", i, seed, trouble.what());
    }
  }
  fmt::print("{} seeds and {} mutations of them, seed {}: survived\n", seeds.size(), iterations, seed);
}

void write_corpus(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  const std::vector<Bytes> seeds = seed_inputs();
  for (size_t i = 0; i < seeds.size(); ++i) {
    const auto written = write_file(directory / fmt::format("seed-{:03}", i), seeds[i]);
    CHECK(written.ok(), "{}", written.error().message);
  }
}

}  // namespace
}  // namespace slalom

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--corpus") {
    slalom::write_corpus(arguments[1]);
  } else if (!arguments.empty() && arguments[0] == "--run") {
    for (size_t i = 1; i < arguments.size(); ++i) slalom::run(*slalom::read_file(arguments[i]));
  } else {
    slalom::run_mutations(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : slalom::kIterations,
                          argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  }
  return 0;
}
