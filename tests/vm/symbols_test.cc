// Symbols and types of every kernel in the cache against those who must know: the guest's own /proc/kallsyms,
// read while it runs, for functions and variables of the kernel and of loaded modules; libbpf for all types.
#include <bpf/btf.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "symbols/btf.h"
#include "symbols/elf_symbols.h"
#include "symbols/linux_modules.h"
#include "vm/boot/boot.h"
#include "vm/boot/image.h"
#include "vm/boot/kernel_cache.h"
#include "vm/memory/guest_memory.h"

namespace slalom::vm {
namespace {

std::vector<uint8_t> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0, count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;  // ends of lines, and of the text
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) >= 8) bytes.push_back(static_cast<uint8_t>(bits >> (count -= 8)));
  }
  return bytes;
}

std::string gunzip(std::vector<uint8_t> packed) {
  std::string text(64 << 20, '\0');
  z_stream stream = {};
  CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK, "zlib");
  stream.next_in = packed.data();
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

std::string line(const Symbol& symbol) {
  std::string text = fmt::format("{:016x} {} {}", symbol.address, symbol.type, symbol.name);
  if (!symbol.module.empty()) text += fmt::format("\t[{}]", symbol.module);
  return text;
}

// A guest that has loaded modules, said its symbols, and sleeps. What ends them is no base64.
struct Guest {
  Booted machine;
  std::string said;
};
Guest run_guest(const std::string& kernel) {
  Result<Booted> machine =
      boot({.kernel = kernel,
            .run = "dmesg -n 1; echo BEGIN; gzip -1 < /proc/kallsyms | base64; echo -E''ND-; sleep 1000",
            .modules = {"loop", "veth", "xfs", "btrfs"}});
  CHECK(machine.ok(), "{}", machine.error().message);
  Guest guest{.machine = *std::move(machine), .said = {}};
  Pc& pc = *guest.machine.pc;
  while (guest.said.find("-END-") == std::string::npos) {
    CHECK(pc.run(5'000'000) == PcStop::Budget, "it stopped early: {}", guest.said);
    guest.said += pc.devices().take_console_output();
  }
  return guest;
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
  const size_t begin = guest.said.find("BEGIN\r\n") + 7;
  const std::string text =
      gunzip(from_base64(std::string_view(guest.said).substr(begin, guest.said.find("-END-") - begin)));

  std::string of_kernel;
  std::set<std::string> of_modules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t module = line.find("\t[");
    if (module == std::string::npos) {
      of_kernel += line + "\n";
    } else if (!line.ends_with("[bpf]") && line.find("[__builtin") == std::string::npos) {
      line[17] = static_cast<char>(std::tolower(line[17]));  // large: exported, which symbols do not tell
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
      // Per-CPU variables lie elsewhere, and numbers nowhere.
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
  std::map<std::string, int> times;  // by name: what several types share is not compared
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
      // The first byte of a struct's own member is described by it, or by what lies inside.
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
