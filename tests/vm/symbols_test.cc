// Compares the symbols and types of every cached kernel with other sources: the guest's own /proc/kallsyms,
// read while it runs, for functions and variables of the kernel and of loaded modules; libbpf for all types.
#include <bpf/btf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "kernel_store/kernel_cache.h"
#include "symbols/btf.h"
#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/boot/boot.h"
#include "vm/boot/image.h"
#include "vm/control/hypercall.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

std::string line(const Symbol& symbol) {
  std::string text = fmt::format("{:016x} {} {}", symbol.address, symbol.type, symbol.name);
  if (!symbol.module.empty()) text += fmt::format("\t[{}]", symbol.module);
  return text;
}

// A guest that has loaded modules, reported its symbols with tell.c, and now sleeps.
struct Guest {
  Booted machine;
  std::string symbols;
};

class Listener final : public Hypercalls {
 public:
  bool on_hypercall(Cpu& cpu) override {
    const Hypercall call = hypercall_of(cpu);
    if (call.number != SLALOM_OUTPUT) return true;
    const auto bytes = read_buffer(cpu, call.b, call.c, 1 << 20);
    CHECK(bytes.has_value(), "a buffer of {} bytes is not in memory", call.c);
    heard.append(bytes->begin(), bytes->end());
    ended = bytes->empty();
    answer(cpu, 0);
    return true;
  }
  std::string heard;
  bool ended = false;
};

Guest run_guest(const std::string& kernel) {
  Result<Booted> machine = boot({.kernel = kernel,
                                 .run = "/bin/tell < /proc/kallsyms; sleep 1000",
                                 .modules = {"loop", "veth", "xfs", "btrfs"},
                                 .files = {{.host = TELL_PROGRAM, .guest = "/bin/tell"}}});
  CHECK(machine.ok(), "{}", machine.error().message);
  Pc& pc = *machine->pc;
  Listener listener;
  pc.set_hypercalls(&listener);
  std::string console;
  while (!listener.ended) {
    CHECK(pc.run(5'000'000) == PcStop::Budget, "it stopped early: {}", console);
    console += pc.devices().take_console_output();
  }
  pc.set_hypercalls(nullptr);
  return {.machine = *std::move(machine), .symbols = std::move(listener.heard)};
}

class Symbols : public testing::TestWithParam<std::string> {
 public:
  void SetUp() override {
    const Result<KernelCache> cache = KernelCache::open();
    if (!cache.ok() || !cache->has(GetParam()))
      GTEST_SKIP() << GetParam() << " is not in the cache: scripts/fetch-kernel fetches it";
    Result<Image> image = read_image(cache->load(GetParam())->vmlinuz);
    ASSERT_TRUE(image.ok()) << image.error().message;
    image_ = *std::move(image);
    Result<ElfPiece> section = elf_section(image_.data, ".BTF");
    ASSERT_TRUE(section.ok()) << section.error().message;
    section_ = section->bytes;
    Result<Btf> btf = Btf::parse(section_);
    ASSERT_TRUE(btf.ok()) << btf.error().message;
    btf_ = *std::move(btf);
  }

 protected:
  Image image_;
  std::span<const uint8_t> section_;
  std::optional<Btf> btf_;
};

TEST_P(Symbols, AreThoseThatTheGuestItselfKnows) {
  const Result<SymbolTable> kernel = read_vmlinux_symbols(image_.data);
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  std::string own;
  for (const Symbol& symbol : kernel->symbols()) own += line(symbol) + "\n";

  Guest guest = run_guest(GetParam());

  std::string of_kernel;
  std::set<std::string> of_modules;
  std::istringstream lines(guest.symbols);
  for (std::string line; std::getline(lines, line);) {
    const size_t module = line.find("\t[");
    if (module == std::string::npos) {
      of_kernel += line + "\n";
    } else if (!line.ends_with("[bpf]") && line.find("[__builtin") == std::string::npos) {
      // Upper case means exported, which the symbols do not show.
      line[17] = static_cast<char>(std::tolower(line[17]));
      of_modules.insert(line);
    }
  }
  EXPECT_TRUE(own == of_kernel) << own.size() << " bytes, the guest says " << of_kernel.size();

  CpuMemory memory(guest.machine.pc->cpu(0));
  const Result<std::vector<LinuxModule>> modules = read_linux_modules(memory, *kernel, *btf_);
  ASSERT_TRUE(modules.ok()) << modules.error().message;
  std::set<std::string> found;
  for (const LinuxModule& module : *modules) {
    for (const Symbol& symbol : module.symbols) {
      found.insert(line(symbol));
      const auto holds = [&](const LinuxModule::Region& region) {
        return symbol.address - region.start < region.size;
      };
      // Per-CPU variables are elsewhere, and absolute symbols nowhere.
      if (symbol.is_code()) {
        EXPECT_TRUE(std::ranges::any_of(module.regions, holds)) << line(symbol);
      }
    }
  }
  EXPECT_GT(of_modules.size(), 1000u);
  EXPECT_EQ(found.size(), of_modules.size());
  EXPECT_TRUE(found == of_modules);
  const SymbolTable all = with_modules(*kernel, *modules);
  const std::optional<uint64_t> mount = all.address_of("xfs:xfs_mountfs");
  ASSERT_TRUE(mount.has_value());
  EXPECT_EQ(all.describe(*mount + 1), "xfs:xfs_mountfs+0x1");
}

TEST_P(Symbols, TypesAreAsLibbpfReadsThem) {
  btf* other = btf__new(section_.data(), static_cast<uint32_t>(section_.size()));
  ASSERT_NE(other, nullptr);
  ASSERT_EQ(btf_->type_count(), btf__type_cnt(other) - 1);
  std::map<std::string, int> times;  // by name; names that several types share are not compared
  for (uint32_t id = 1; id < btf__type_cnt(other); ++id) {
    const btf_type* type = btf__type_by_id(other, id);
    if (btf_is_composite(type) || btf_is_typedef(type) || btf_is_any_enum(type))
      ++times[btf__name_by_offset(other, type->name_off)];
  }
  uint64_t structs = 0, members = 0;
  for (uint32_t id = 1; id < btf__type_cnt(other); ++id) {
    const btf_type* type = btf__type_by_id(other, id);
    const std::string name = btf__name_by_offset(other, type->name_off);
    if (!btf_is_composite(type) || name.empty() || times[name] != 1) continue;
    ++structs;
    ASSERT_EQ(btf_->size_of(name), type->size) << name;
    for (uint32_t i = 0; i < btf_vlen(type); ++i) {
      const btf_member& member = btf_members(type)[i];
      const std::string path = name + "." + btf__name_by_offset(other, member.name_off);
      if (path.back() == '.') continue;
      ++members;
      const std::optional<Btf::Field> field = btf_->field(path);
      ASSERT_TRUE(field.has_value()) << path;
      ASSERT_EQ(field->offset * 8 + field->bit_shift, btf_member_bit_offset(type, i)) << path;
      ASSERT_EQ(field->bit_size, btf_member_bitfield_size(type, i)) << path;
      const int64_t size = btf__resolve_size(other, member.type);
      if (field->bit_size != 0) continue;
      ASSERT_TRUE(size < 0 || static_cast<int64_t>(field->size) == size) << path;
      // The first byte of a member is described as the member, or as a member inside it.
      if (field->size == 0 || btf_is_union(type)) continue;
      ASSERT_TRUE(btf_->describe(name, field->offset).starts_with(path)) << path;
    }
  }
  EXPECT_GT(structs, 5'000u);
  EXPECT_GT(members, 40'000u);
  btf__free(other);
  EXPECT_EQ(btf_->field("task_struct.comm")->size, 16u);
  EXPECT_EQ(btf_->enumerator("MODULE_STATE_UNFORMED"), 3);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Symbols, testing::ValuesIn(known_kernels()), [](const auto& kernel) {
  std::string name = kernel.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace slalom::vm
