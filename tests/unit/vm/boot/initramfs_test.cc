#include "vm/boot/initramfs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "base/child.h"
#include "kernel_store/control_file.h"
#include "unit/kernel_store/kernel_files.h"
#include "unit/kernel_store/scratch_directory.h"
#include "vm/boot/shared_libraries.h"

namespace slalom::vm {
namespace {

const Bytes kAgent = text_bytes("the agent");

// Lists an archive with busybox, an independent implementation.
std::vector<std::string> listing(const ScratchDirectory& scratch, const Bytes& archive) {
  const std::filesystem::path file = scratch.write("archive.cpio", archive);
  const auto done =
      run_child({.program = "busybox", .arguments = {"cpio", "-t", "-F", file.string()}}, "busybox-static");
  EXPECT_TRUE(done.ok() && done->status == 0) << (done.ok() ? done->errors : done.error().message);
  return done.ok() ? split_words(done->output) : std::vector<std::string>();
}

std::string extracted(const ScratchDirectory& scratch, const std::string& name) {
  std::filesystem::create_directories(scratch.path() / "out");
  const auto done =
      run_child({.program = "busybox",
                 .arguments = {"cpio", "-i", "-d", "-F", (scratch.path() / "archive.cpio").string(), name},
                 .directory = scratch.path() / "out"},
                "busybox-static");
  EXPECT_TRUE(done.ok() && done->status == 0);
  const auto bytes = read_file(scratch.path() / "out" / name);
  return bytes.ok() ? std::string(bytes->begin(), bytes->end()) : bytes.error().message;
}

bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

TEST(Initramfs, HoldsBusyboxAgentAndDevices) {
  const ScratchDirectory scratch;
  const auto archive = build_initramfs({.agent = kAgent});
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  const auto list = listing(scratch, *archive);
  for (const char* name :
       {"init", "bin/busybox", "bin/sh", "dev/console", "dev/null", "proc", "tmp", "sbin/modprobe"})
    EXPECT_TRUE(holds(list, name)) << name;
  EXPECT_EQ(extracted(scratch, "init"), "the agent");
  EXPECT_EQ(*archive, *build_initramfs({.agent = kAgent}));
}

TEST(Initramfs, ModulesComeWithAListInLoadingOrder) {
  const ScratchDirectory scratch;
  scratch.write("modules/kernel/a.ko", make_module({"depends=b", "alias=fs-a"}));
  scratch.write("modules/kernel/b.ko", make_module({"depends="}));
  const Kernel kernel{.name = "k", .release = "9.9", .modules = scratch.path() / "modules"};
  const auto archive = build_initramfs({.kernel = kernel, .modules = {"a"}, .agent = kAgent});
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  EXPECT_TRUE(holds(listing(scratch, *archive), "lib/modules/9.9/kernel/a.ko"));
  EXPECT_EQ(extracted(scratch, kModuleList), "/lib/modules/9.9/kernel/b.ko\n/lib/modules/9.9/kernel/a.ko\n");
  EXPECT_EQ(extracted(scratch, "lib/modules/9.9/modules.dep"), "kernel/b.ko:\nkernel/a.ko: kernel/b.ko\n");
  EXPECT_EQ(extracted(scratch, "lib/modules/9.9/modules.alias"), "alias fs-a a\n");

  const auto without = build_initramfs({.kernel = {.name = "mine"}, .modules = {"a"}, .agent = kAgent});
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.error().message.find("mine comes without modules"), std::string::npos);
}

TEST(Initramfs, ModulesWithParameters) {
  const ScratchDirectory scratch;
  scratch.write("modules/kernel/a.ko",
                make_module({"name=a", "depends=", "parmtype=size:int", "vermagic=9.9 SMP"}));
  const Kernel kernel{.name = "k", .release = "9.9", .modules = scratch.path() / "modules"};
  const auto archive = build_initramfs({.kernel = kernel, .modules = {"a size=3", "a"}, .agent = kAgent});
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  listing(scratch, *archive);
  EXPECT_EQ(extracted(scratch, kModuleList), "/lib/modules/9.9/kernel/a.ko size=3\n");
  const auto refused = [](const Kernel& kernel, std::vector<std::string> modules) {
    const auto archive = build_initramfs({.kernel = kernel, .modules = std::move(modules), .agent = kAgent});
    return archive.ok() ? "accepted" : archive.error().message;
  };
  EXPECT_EQ(refused(kernel, {"a sice=3"}), "the module a has no parameter \"sice\"; it has size");
  EXPECT_NE(refused(kernel, {"a size=3", "a size=4"}).find("is given twice"), std::string::npos);
  const Kernel other{.name = "k", .release = "9.8", .modules = kernel.modules};
  EXPECT_NE(refused(other, {"a"}).find("was built for Linux 9.9, and this kernel is 9.8"), std::string::npos);
}

TEST(Initramfs, AProgramOfTheUserReplacesBusyboxsCommand) {
  const ScratchDirectory scratch;
  const auto tool = scratch.write("tool", text_bytes("#!/bin/sh\n"));
  for (const char* place : {"/usr/bin/ip", "bin/ip", "//sbin/ip"}) {
    const auto archive = build_initramfs({.files = {{tool, place}}, .agent = kAgent});
    ASSERT_TRUE(archive.ok()) << archive.error().message;
    const auto list = listing(scratch, *archive);
    EXPECT_EQ(std::ranges::count_if(list, [](const std::string& name) { return name.ends_with("bin/ip"); }),
              1)
        << place;
    // busybox's shell would run its own command, so the guest gets the host's.
    EXPECT_EQ(extracted(scratch, "bin/sh").substr(1, 3), "ELF");
    std::filesystem::remove_all(scratch.path() / "out");
  }
  for (const char* place : {"/root/ip", "/usr/bin/no-command-of-busybox", "/usr/bin/sub/ip"}) {
    const auto archive = build_initramfs({.files = {{tool, place}}, .agent = kAgent});
    const auto list = listing(scratch, *archive);
    EXPECT_TRUE(holds(list, "bin/ip") || holds(list, "sbin/ip")) << place;
    EXPECT_FALSE(holds(list, "lib64/ld-linux-x86-64.so.2")) << place;
  }
}

TEST(Initramfs, FilesOfTheUser) {
  const ScratchDirectory scratch;
  const auto tool = scratch.write("tool", text_bytes("#!/bin/sh\n"));
  chmod(tool.c_str(), 0750);
  scratch.write("tree/deep/file", text_bytes("deep"));
  std::filesystem::create_symlink("deep/file", scratch.path() / "tree/link");
  const auto archive = build_initramfs(
      {.files = {{tool, "/usr/bin/tool"}, {scratch.path() / "tree", "data"}}, .agent = kAgent});
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  const auto list = listing(scratch, *archive);
  for (const char* name : {"usr/bin/tool", "data/deep/file", "data/link"})
    EXPECT_TRUE(holds(list, name)) << name;
  EXPECT_EQ(extracted(scratch, "data/deep/file"), "deep");
  EXPECT_EQ(extracted(scratch, "usr/bin/tool"), "#!/bin/sh\n");
  struct stat status = {};
  ASSERT_EQ(stat((scratch.path() / "out/usr/bin/tool").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0750u);

  for (const std::filesystem::path& host : {scratch.path() / "none", std::filesystem::path("/dev/null")})
    EXPECT_FALSE(build_initramfs({.files = {{host, "x"}}, .agent = kAgent}).ok()) << host;
  EXPECT_FALSE(build_initramfs({.files = {{tool, "../x"}}, .agent = kAgent}).ok());
}

// ldd, which uses the dynamic linker itself, names the same files.
TEST(Initramfs, ProgramsComeWithTheirLibraries) {
  const ScratchDirectory scratch;
  const auto archive = build_initramfs({.files = {{"/usr/bin/apt-get", "usr/bin/program"}}, .agent = kAgent});
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  std::set<std::string> ours, theirs;
  for (const std::string& name : listing(scratch, *archive))
    if (name.find(".so") != std::string::npos) ours.insert(std::filesystem::path(name).filename());
  const auto ldd = run_child({.program = "ldd", .arguments = {"/usr/bin/apt-get"}}, "libc-bin");
  ASSERT_TRUE(ldd.ok() && ldd->status == 0);
  for (const std::string& word : split_words(ldd->output))
    if (word.find(".so") != std::string::npos && word.find("vdso") == std::string::npos)
      theirs.insert(std::filesystem::path(word).filename());
  EXPECT_EQ(ours, theirs);
  EXPECT_TRUE(ours.contains("libc.so.6") && ours.contains("ld-linux-x86-64.so.2"));
}

TEST(SharedLibraries, WhatIsNoProgramNeedsNothing) {
  EXPECT_TRUE(shared_objects(text_bytes("#!/bin/sh")).needed.empty());
  EXPECT_TRUE(shared_objects(make_vmlinux()).interpreter.empty());
  EXPECT_EQ(shared_objects(make_elf64(0, {{0, 0, text_bytes("/lib64/ld.so"), 0, 3}})).interpreter,
            "/lib64/ld.so");
  // A name far outside of the file, and a table of names that does not exist.
  Bytes dynamic;
  for (const uint64_t word : {uint64_t{1}, ~uint64_t{0}, uint64_t{1}, uint64_t{5}, uint64_t{5}, uint64_t{0}})
    append_le<uint64_t>(dynamic, word);
  EXPECT_EQ(shared_objects(make_elf64(0, {{0, 0, dynamic, 0, 2}, {0, 0, text_bytes("names"), 0, 1}})).needed,
            std::vector<std::string>{""});
  EXPECT_TRUE(shared_objects(make_elf64(0, {{0, 0, dynamic, 0, 2}})).needed.empty());
}

TEST(SharedLibraries, AMissingOneIsNamed) {
  const Bytes program = make_elf64(0, {{0, 0, text_bytes("/lib64/no-such-linker.so"), 0, 3}});
  const auto done = for_each_shared_object("prog", program, [](const auto&, auto) { return Result<void>(); });
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("prog needs /lib64/no-such-linker.so"), std::string::npos);
}

TEST(Initramfs, OnlyAStaticBusyboxOfTheRightKind) {
  const ScratchDirectory scratch;
  const auto reason = [&](const Bytes& program) {
    const auto path = scratch.write("busybox", program);
    const auto archive = build_initramfs({.busybox = path, .agent = kAgent});
    return archive.ok() ? "accepted" : archive.error().message;
  };
  EXPECT_NE(reason(make_elf64(0, {{0, 0, text_bytes("/lib/ld.so"), 0, 3}})).find("busybox-static"),
            std::string::npos);
  EXPECT_NE(reason(make_elf64(0, {}, 183)).find("no program for x86-64"), std::string::npos);
  EXPECT_NE(reason(text_bytes("#!")).find("no program for x86-64"), std::string::npos);
}

TEST(Initramfs, TheCacheIsUsedOnlyForTheSameInputs) {
  const ScratchDirectory scratch;
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(scratch.path() / "cache"), {});
  };
  const auto tool = scratch.write("tool", text_bytes("1"));
  const InitramfsOptions options{.files = {{tool, "tool"}}, .agent = kAgent};
  const Bytes first = *cached_initramfs(scratch.path() / "cache", options);
  EXPECT_EQ(first, *build_initramfs(options));
  EXPECT_EQ(*cached_initramfs(scratch.path() / "cache", options), first);
  EXPECT_EQ(count(), 1);
  scratch.write("tool", text_bytes("2"));
  EXPECT_NE(*cached_initramfs(scratch.path() / "cache", options), first);
  EXPECT_EQ(count(), 2);
}

TEST(Initramfs, ADamagedOneInTheCacheIsMadeAnew) {
  const ScratchDirectory scratch;
  const InitramfsOptions options{.agent = kAgent};
  const Bytes right = *build_initramfs(options);
  const std::filesystem::path cache = scratch.path() / "cache";
  EXPECT_EQ(*cached_initramfs(cache, options), right);
  const std::filesystem::path file = std::filesystem::directory_iterator(cache)->path();
  const auto size = std::filesystem::file_size(file);
  for (const uintmax_t cut : {uintmax_t{0}, uintmax_t{7}, size / 2, size - 1}) {
    std::filesystem::resize_file(file, cut);
    EXPECT_EQ(*cached_initramfs(cache, options), right);
    EXPECT_EQ(std::filesystem::file_size(file), size);
  }
  Bytes flipped = *read_file(file);
  flipped[size / 2] ^= 1;
  ASSERT_TRUE(write_file(file, flipped).ok());
  EXPECT_EQ(*cached_initramfs(cache, options), right);
}

TEST(Agent, IsAStaticProgram) {
  const Bytes agent(agent_program().begin(), agent_program().end());
  const ScratchDirectory scratch;
  const auto path = scratch.write("init", agent);
  chmod(path.c_str(), 0755);
  // The agent notices that it is not the first program here.
  const auto done = run_child({.program = path.string()}, "slalom");
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->status, 2);
  EXPECT_NE(done->errors.find("not a command"), std::string::npos);
}

}  // namespace
}  // namespace slalom::vm
