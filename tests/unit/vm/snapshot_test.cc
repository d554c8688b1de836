// Snapshot files: a loaded machine is the same and has the same future. Everything else is refused, with a
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/container.h"
#include "base/file.h"
#include "base/rng.h"
#include "unit/kernel_store/scratch_directory.h"
#include "unit/vm/tiny_machine.h"
#include "vm/snapshot/snapshot_file.h"

namespace slalom::vm {
namespace {

using Bytes = std::vector<uint8_t>;

using testing::StartsWith;

Booted tiny(uint64_t instructions, unsigned cpus = 2) {
  Booted machine{.pc = make_tiny(kWalker, cpus), .kernel = "walker", .identity = "0123"};
  if (instructions != 0) {
    EXPECT_EQ(machine.pc->run(instructions), PcStop::Budget);
  }
  return machine;
}

std::string trouble(std::span<const uint8_t> payload) {
  const Result<Booted> machine = decode_snapshot(payload);
  return machine.ok() ? "no error" : machine.error().message;
}

TEST(Snapshot, TheSameMachineWithTheSameFutureComesBack) {
  for (const unsigned cpus : {1u, 2u, 8u}) {
    for (const uint64_t instructions : {0u, 1u, 2'003u}) {
      Booted machine = tiny(instructions, cpus);
      machine.pc->devices().push_console_input("typed ahead");
      const Bytes payload = encode_snapshot(machine).value();
      Result<Booted> back = decode_snapshot(payload);
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(back->kernel, "walker");
      EXPECT_EQ(back->identity, "0123");
      EXPECT_EQ(back->pc->rest(), machine.pc->rest());
      EXPECT_EQ(encode_snapshot(*back).value(), payload);
      for (int slice = 0; slice < 5; ++slice) {
        back->pc->run(1'009);
        machine.pc->run(1'009);
        EXPECT_EQ(back->pc->state_hash(), machine.pc->state_hash());
      }
    }
  }
}

TEST(Snapshot, SavingChangesNothing) {
  Booted saved = tiny(10'000), other = tiny(10'000);
  ASSERT_TRUE(encode_snapshot(saved).ok());
  saved.pc->run(10'000);
  other.pc->run(10'000);
  EXPECT_EQ(saved.pc->state_hash(), other.pc->state_hash());
}

TEST(Snapshot, FilesAreReadByOtherProcesses) {
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "machine.slalom";
  Booted machine = tiny(30'000);
  ASSERT_TRUE(save_snapshot(path, machine).ok());
  machine.pc->run(30'000);
  const uint64_t expected = machine.pc->state_hash();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<Booted> back = load_snapshot(path);
    if (back.ok()) back->pc->run(30'000);
    _exit(back.ok() && back->pc->state_hash() == expected ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Snapshot, OnlyPagesThatAreNotZeroTakeRoom) {
  Booted machine{
      .pc = std::move(Pc::make({.memory = uint64_t{1} << 30}).value()), .kernel = "", .identity = ""};
  EXPECT_LT(encode_snapshot(machine).value().size(), 10'000u);
  const Bytes text(100, 'x');
  machine.pc->ram().write((uint64_t{1} << 30) - 100, text);
  Result<Booted> back = decode_snapshot(encode_snapshot(machine).value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  Bytes read(100);
  ASSERT_TRUE(back->pc->ram().read((uint64_t{1} << 30) - 100, read));
  EXPECT_EQ(read, text);
}

TEST(Snapshot, RamAboveTheDeviceHoleComesBack) {
  Booted machine{
      .pc = std::move(Pc::make({.memory = uint64_t{3200} << 20}).value()), .kernel = "", .identity = ""};
  const Bytes text = {'h', 'i', 'g', 'h'};
  ASSERT_TRUE(machine.pc->ram().write(kHighRamStart + 5000, text));
  Result<Booted> back = decode_snapshot(encode_snapshot(machine).value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  Bytes read(4);
  ASSERT_TRUE(back->pc->ram().read(kHighRamStart + 5000, read));
  EXPECT_EQ(read, text);
}

TEST(Snapshot, DamagedAndForeignFilesAreRefused) {
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "machine.slalom";
  Booted machine = tiny(30'000);
  ASSERT_TRUE(save_snapshot(path, machine).ok());
  const Bytes file = read_file(path).value();
  const auto trouble_of = [&](const Bytes& bytes) {
    EXPECT_TRUE(write_file(path, bytes).ok());
    const Result<Booted> back = load_snapshot(path);
    return back.ok() ? "no error" : back.error().message;
  };
  const std::string name = path.string();

  EXPECT_EQ(trouble_of({'{', '}'}), name + ": not a slalom file; a snapshot is needed here");
  Rng rng(1);
  for (int i = 0; i < 30; ++i) {
    const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(8 + rng.below(file.size() - 8)));
    EXPECT_THAT(trouble_of(cut), StartsWith(name + ": truncated: "));
    Bytes damaged = file;
    damaged[kContainerHeader + rng.below(file.size() - kContainerHeader)] ^=
        static_cast<uint8_t>(1u << rng.below(8));
    EXPECT_THAT(trouble_of(damaged), StartsWith(name + ": corrupted: "));
  }
  Bytes newer = file;
  newer[10] = 2;
  repair_checksum(newer);
  EXPECT_EQ(trouble_of(newer),
            name + ": made by a newer slalom (snapshot version 2, this one reads up to 1); update slalom");
  EXPECT_EQ(trouble_of(*pack_container(FileKind::Capsule, Bytes{1})),
            name + ": this is a capsule, not a snapshot; use `slalom replay` for it");
  const auto as_capsule = unpack_container(file, FileKind::Capsule);
  ASSERT_FALSE(as_capsule.ok());
  EXPECT_EQ(as_capsule.error().message, "this is a snapshot, not a capsule; use `slalom boot --load` for it");
}

TEST(Snapshot, AnotherMachineIsRefused) {
  Booted machine = tiny(1'000);
  Bytes payload = encode_snapshot(machine).value();
  payload[3] ^= 1;
  EXPECT_EQ(trouble(payload),
            "made by another version of slalom's machine, which might go on differently; boot walker again");
}

TEST(Snapshot, ContentsThatDisagreeAreRefused) {
  Booted machine = tiny(1'000);
  const Bytes payload = encode_snapshot(machine).value();
  Bytes longer = payload;
  longer.push_back(0);
  EXPECT_THAT(trouble(longer), StartsWith("malformed: "));
  // 8 bytes of layout, two texts (1 + 6 and 1 + 4 bytes), the number of CPUs, the size of memory.
  Bytes cpus = payload;
  ASSERT_EQ(cpus[20], 2);
  for (const uint8_t count : {0, 1, 3, 9, 100}) {
    cpus[20] = count;
    EXPECT_THAT(trouble(cpus), StartsWith("malformed: ")) << int{count};
  }
  // Everything that is read is used: any changed bit of the payload is detected, unless it has no effect on
  // the decompression.
  const uint64_t hash = machine.pc->state_hash();
  Rng rng(2);
  for (int i = 0; i < 300; ++i) {
    Bytes changed = payload;
    const uint64_t at = rng.below(payload.size());
    changed[at] ^= static_cast<uint8_t>(1u << rng.below(8));
    const Result<Booted> back = decode_snapshot(changed);
    const bool is_name = at >= 8 && at < 20;
    EXPECT_TRUE(!back.ok() || is_name || back->pc->state_hash() == hash) << "byte " << at;
  }
}

}  // namespace
}  // namespace slalom::vm
