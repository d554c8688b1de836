#include "kernel_store/modules.h"

#include <gtest/gtest.h>
#include <lzma.h>

#include "kernel_store/kernel_cache.h"
#include "unit/kernel_store/kernel_files.h"
#include "unit/kernel_store/scratch_directory.h"

namespace slalom::vm {
namespace {

Bytes xz(const Bytes& plain) {
  Bytes packed(lzma_stream_buffer_bound(plain.size()));
  size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr, plain.data(), plain.size(), packed.data(),
                                    &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

std::vector<std::string> names(const Result<std::vector<Module>>& modules) {
  if (!modules.ok()) return {modules.error().message};
  std::vector<std::string> all;
  for (const Module& module : *modules) all.push_back(module.name);
  return all;
}

using Names = std::vector<std::string>;

class Modules : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("kernel/fs/top.ko.xz", xz(make_module({"depends=left-side,right", "name=top"})));
    scratch_.write("kernel/lib/left-side.ko", make_module({"depends=base", "alias=crypto-left"}));
    scratch_.write("kernel/lib/right.ko", make_module({"depends=base,built_in"}));
    scratch_.write("kernel/lib/base.ko", make_module({"depends="}));
    scratch_.write("kernel/fs/soft.ko",
                   make_module({"softdep=pre: left-alias nowhere crc post: base", "depends="}));
    scratch_.write("kernel/arch/x86/fast.ko", make_module({"alias=left-alias"}));
    scratch_.write("kernel/lib/generic.ko", make_module({"alias=left-alias"}));
    scratch_.write("kernel/lib/crc_generic2.ko", make_module({"alias=crc"}));
    scratch_.write("kernel/lib/lost.ko", make_module({"depends=gone"}));
    scratch_.write("kernel/lib/ring1.ko", make_module({"depends=ring2"}));
    scratch_.write("kernel/lib/ring2.ko", make_module({"depends=ring1"}));
    scratch_.write("modules.builtin", text_bytes("kernel/lib/built-in.ko\nkernel/lib/crc_generic.ko\n"));
    scratch_.write("modules.builtin.modinfo",
                   text_bytes(std::string("built_in.license=GPL\0crc_generic.alias=crc\0", 44)));
  }
  ModuleTree tree() { return *ModuleTree::open(scratch_.path()); }

  ScratchDirectory scratch_;
};

TEST_F(Modules, DependenciesComeFirstAndOnce) {
  ModuleTree modules = tree();
  const auto loaded = modules.with_dependencies({"top", "base"});
  EXPECT_EQ(names(loaded), (Names{"base", "left_side", "right", "top"}));
  EXPECT_EQ(loaded->back().path, "kernel/fs/top.ko");
  EXPECT_EQ(loaded->back().bytes, make_module({"depends=left-side,right", "name=top"}));  // unpacked
}

TEST_F(Modules, DashesAndUnderscoresAreTheSame) {
  ModuleTree modules = tree();
  EXPECT_EQ(names(modules.with_dependencies({"left_side"})), (Names{"base", "left_side"}));
  EXPECT_EQ(names(modules.with_dependencies({"left-side"})), (Names{"base", "left_side"}));
}

TEST_F(Modules, WhatIsBuiltInNeedsNoLoading) {
  ModuleTree modules = tree();
  EXPECT_TRUE(modules.is_builtin("built-in"));
  EXPECT_EQ(names(modules.with_dependencies({"built_in"})), Names{});
}

TEST_F(Modules, SoftDependenciesByAliasForAnyCpuAndNotIfBuiltIn) {
  ModuleTree modules = tree();
  EXPECT_EQ(names(modules.with_dependencies({"soft"})), (Names{"generic", "soft"}));
}

TEST_F(Modules, WhatIsMissingIsNamed) {
  ModuleTree modules = tree();
  EXPECT_NE(names(modules.with_dependencies({"nothing"}))[0].find("no module called nothing"),
            std::string::npos);
  EXPECT_NE(names(modules.with_dependencies({"lost"}))[0].find("lost needs gone"), std::string::npos);
  EXPECT_FALSE(ModuleTree::open(scratch_.path() / "none").ok());
}

TEST_F(Modules, ACircleEnds) {
  ModuleTree modules = tree();
  EXPECT_EQ(names(modules.with_dependencies({"ring1"})), (Names{"ring2", "ring1"}));
}

TEST_F(Modules, DamagedOnesAreNamed) {
  scratch_.write("kernel/lib/bad.ko", text_bytes("not a module"));
  scratch_.write("kernel/lib/worse.ko.xz", {0xfd, '7', 'z', 'X', 'Z', 0, 1, 2, 3});
  scratch_.write("kernel/lib/plain.ko", make_elf64(0, {}));
  ModuleTree modules = tree();
  EXPECT_NE(names(modules.with_dependencies({"bad"}))[0].find("bad.ko"), std::string::npos);
  EXPECT_NE(names(modules.with_dependencies({"worse"}))[0].find("xz data is damaged"), std::string::npos);
  EXPECT_NE(names(modules.with_dependencies({"plain"}))[0].find("no kernel module"), std::string::npos);
}

TEST(ParseModule, EveryTruncationIsHarmless) {
  const Bytes whole = make_module({"name=a-b", "depends=c,d-e", "alias=fs-x", "softdep=pre: f g post: h"});
  const auto module = parse_module(whole);
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(module->name, "a_b");
  EXPECT_EQ(module->depends, (Names{"c", "d_e"}));
  EXPECT_EQ(module->aliases, Names{"fs-x"});
  EXPECT_EQ(module->loads_first, (Names{"f", "g"}));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_module(std::span(whole).first(size)).ok()) << size;
}

TEST(WantedModules, NameAndParameters) {
  const WantedModule plain = parse_wanted_module("crc-ccitt");
  EXPECT_EQ(plain.name, "crc_ccitt");
  EXPECT_EQ(plain.parameters, "");
  const WantedModule wanted = parse_wanted_module("snd-x  index=1 id=\"a b\"");
  EXPECT_EQ(wanted.name, "snd_x");
  EXPECT_EQ(wanted.parameters, "index=1 id=\"a b\"");
  EXPECT_EQ(as_kernel_options(wanted), "snd_x.index=1 snd_x.id=\"a b\"");
  EXPECT_EQ(as_kernel_options(plain), "");
}

TEST(WantedModules, UnknownParametersAreNamed) {
  Module module = *parse_module(
      make_module({"name=loop", "parm=max_loop:Maximum", "parmtype=max_loop:int", "parmtype=max-part:int"}));
  EXPECT_EQ(module.parameters, (Names{"max_loop", "max-part"}));
  for (const char* right : {"", "max_loop=3", "max-loop=3 max_part=4", "max_loop", "dyndbg=+p"})
    EXPECT_TRUE(check_parameters(module, right).ok()) << right;
  EXPECT_EQ(check_parameters(module, "max_loop=3 max_lop=4").error().message,
            "the module loop has no parameter \"max_lop\"; it has max_loop, max-part");
  module.parameters.clear();
  EXPECT_EQ(check_parameters(module, "a=\"x b=1\"").error().message,
            "the module loop has no parameter \"a\"; it has none");
}

TEST(WantedModules, OfAnotherKernel) {
  Module module = *parse_module(make_module({"name=a", "vermagic=6.1.0-9-x SMP mod_unload "}));
  EXPECT_EQ(module.built_for, "6.1.0-9-x");
  EXPECT_TRUE(check_built_for(module, "6.1.0-9-x").ok());
  EXPECT_TRUE(check_built_for(module, "").ok());
  EXPECT_EQ(
      check_built_for(module, "6.1.0-8-x").error().message,
      "the module a was built for Linux 6.1.0-9-x, and this kernel is 6.1.0-8-x: build it for this kernel");
  module.has_versions = true;  // the kernel compares the symbols, and may take it
  EXPECT_TRUE(check_built_for(module, "6.1.0-8-x").ok());
  EXPECT_FALSE(check_built_for(module, "6.12.0-8-x").ok());
}

TEST_F(Modules, AFileHasANameWithoutSayingIt) {
  EXPECT_EQ(read_module(scratch_.path() / "kernel/lib/left-side.ko")->name, "left_side");
  EXPECT_EQ(read_module(scratch_.path() / "kernel/fs/top.ko.xz")->depends, (Names{"left_side", "right"}));
  EXPECT_FALSE(read_module(scratch_.path() / "modules.builtin").ok());
}

// modinfo of Debian's btrfs says the same.
TEST(ModulesOfDebian, BtrfsComesWithWhatItNeeds) {
  const auto cache = KernelCache::open();
  if (!cache.ok() || !cache->has("debian:6.1"))
    GTEST_SKIP() << "no kernel here; run: slalom kernel get debian:6.1";
  auto modules = ModuleTree::open(cache->load("debian:6.1")->modules);
  ASSERT_TRUE(modules.ok());
  Names loaded = names(modules->with_dependencies({"btrfs"}));
  EXPECT_EQ(loaded.back(), "btrfs");
  for (const char* needed : {"libcrc32c", "raid6_pq", "xor", "zstd_compress", "blake2b_generic"})
    EXPECT_NE(std::find(loaded.begin(), loaded.end(), needed), loaded.end()) << needed;
}

}  // namespace
}  // namespace slalom::vm
