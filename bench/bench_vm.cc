// Speed of the virtual machine: instructions a second in a loop and in the boot of a real kernel, restores a
// second, hashing, and files. What needs debian:6.1 says so where it is missing (scripts/fetch-kernel).
#include <benchmark/benchmark.h>

#include <optional>

#include "checksum.h"
#include "vm/boot/boot.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kBoot = 100 * kMillion;  // a part of one that has seen most of what a boot does

std::optional<Booted> booted(benchmark::State& state, unsigned cpus) {
  Result<Booted> machine = boot({.run = "echo hello", .pc = {.cpus = cpus}});
  if (machine.ok()) return std::move(*machine);
  state.SkipWithError(machine.error().message.c_str());
  return std::nullopt;
}

void boot_instructions(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<Booted> machine = booted(state, static_cast<unsigned>(state.range(0)));
    if (!machine) return;
    state.ResumeTiming();
    machine->pc->run(kBoot);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBoot));
}
BENCHMARK(boot_instructions)->ArgName("cpus")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

// Every access and every block observed: real batches, whose contents go into a checksum.
void boot_observed(benchmark::State& state) {
  uint64_t seen = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<Booted> machine = booted(state, static_cast<unsigned>(state.range(0)));
    if (!machine) return;
    Checksum checksum;
    Tap tap(checksum, {.calls = true, .edges = true});
    machine->pc->attach(&tap);
    state.ResumeTiming();
    machine->pc->run(kBoot);
    benchmark::DoNotOptimize(checksum.value());
    seen = checksum.accesses();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kBoot));
  state.counters["accesses"] = static_cast<double>(seen);
}
BENCHMARK(boot_observed)->ArgName("cpus")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

// 32-bit code that only counts: the most that the interpreter can do.
void loop_instructions(benchmark::State& state) {
  // 1: inc eax;  add ebx, eax;  xor ecx, ebx;  cmp eax, 0;  jne 1b;  jmp 1b
  const uint8_t code[] = {0x40, 0x01, 0xc3, 0x31, 0xd9, 0x83, 0xf8, 0x00, 0x75, 0xf6, 0xeb, 0xf4};
  std::unique_ptr<Pc> pc = std::move(Pc::make({.memory = uint64_t{2} << 20}).value());
  pc->ram().write(0x10000, code);
  pc->enter({.mode = EntryState::Mode::Protected32, .rip = 0x10000, .code_selector = 8, .data_selector = 16});
  for (auto _ : state) pc->run(kMillion);
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kMillion));
}
BENCHMARK(loop_instructions)->Unit(benchmark::kMicrosecond);

// A guest of 256 MB, of which that many pages were written since the checkpoint. The goal is 5,000 a second
// with 300.
void restore(benchmark::State& state) {
  std::optional<Booted> machine = booted(state, 2);
  if (!machine) return;
  Pc& pc = *machine->pc;
  pc.run(kBoot);
  pc.ram().make_base();
  const Pc::Checkpoint start = pc.take();
  const uint64_t pages = static_cast<uint64_t>(state.range(0));
  const std::vector<uint8_t> byte = {1};
  const auto there_and_back = [&] {
    for (uint64_t i = 0; i < pages; ++i) pc.ram().write((i * 37 % 60'000) * kPageSize + 5, byte);
    pc.restore(start);
  };
  there_and_back();  // the host gives out its memory the first time
  for (auto _ : state) there_and_back();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(restore)->ArgName("pages")->Arg(10)->Arg(300)->Arg(3000)->Unit(benchmark::kMicrosecond);

// What an execution of a search does: go back, run a little.
void restore_and_run(benchmark::State& state) {
  std::optional<Booted> machine = booted(state, 2);
  if (!machine) return;
  Pc& pc = *machine->pc;
  pc.run(kBoot);
  pc.ram().make_base();
  const Pc::Checkpoint start = pc.take();
  const uint64_t instructions = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    pc.run(instructions);
    pc.restore(start);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(restore_and_run)->ArgName("instructions")->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void state_hash(benchmark::State& state) {
  std::optional<Booted> machine = booted(state, 2);
  if (!machine) return;
  machine->pc->run(kBoot);
  for (auto _ : state) {
    machine->pc->run(10'000);
    benchmark::DoNotOptimize(machine->pc->state_hash());
  }
}
BENCHMARK(state_hash)->Unit(benchmark::kMicrosecond);

void save_and_load(benchmark::State& state) {
  std::optional<Booted> machine = booted(state, 2);
  if (!machine) return;
  machine->pc->run(kBoot);
  size_t size = 0;
  for (auto _ : state) {
    const Result<std::vector<uint8_t>> payload = encode_snapshot(*machine);
    const Result<Booted> loaded = decode_snapshot(*payload);
    if (!loaded.ok()) state.SkipWithError(loaded.error().message.c_str());
    size = payload->size();
  }
  state.counters["bytes"] = static_cast<double>(size);
}
BENCHMARK(save_and_load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace slalom::vm
