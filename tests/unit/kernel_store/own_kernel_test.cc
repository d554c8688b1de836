#include "kernel_store/own_kernel.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "unit/kernel_store/kernel_files.h"
#include "unit/kernel_store/scratch_directory.h"

namespace slalom::vm {
namespace {

Bytes gzip(const Bytes& plain) {
  Bytes packed(plain.size() + 1000);
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// The version's text follows the header, as in real images.
Bytes bzimage_of(const std::string& version) {
  Bytes file = make_bzimage(text_bytes("payload"));
  const size_t at = 0x300;
  std::copy(version.begin(), version.end(), file.begin() + at);
  put_le<uint16_t>(std::span(file), 0x20e, at - 0x200);
  return file;
}

TEST(KernelRelease, OfEachKindOfFile) {
  EXPECT_EQ(kernel_release(make_vmlinux()), "9.9.9");
  EXPECT_EQ(kernel_release(gzip(make_vmlinux())), "9.9.9");
  EXPECT_EQ(kernel_release(bzimage_of("6.1.0-9-mine (me@here) #1 SMP")), "6.1.0-9-mine");
  EXPECT_EQ(kernel_release(text_bytes("Linux version %s, Linux version 5.10.0 (x)")), "5.10.0");
}

TEST(KernelRelease, IsEmptyIfTheFileDoesNotSay) {
  EXPECT_EQ(kernel_release(make_bzimage(text_bytes("payload"))), "");
  EXPECT_EQ(kernel_release(text_bytes("Linux version ")), "");
  EXPECT_EQ(kernel_release({}), "");
  Bytes image = bzimage_of("6.1.0 (x)");
  put_le<uint16_t>(std::span(image), 0x20e, 0xfff0);
  EXPECT_EQ(kernel_release(image), "");
  const Bytes whole = bzimage_of("6.1.0");
  for (size_t size = 0; size < whole.size(); ++size) kernel_release(std::span(whole).first(size));
}

class OwnModules : public testing::Test {
 protected:
  void put(const std::string& directory) {
    scratch_.write(directory + "/kernel/a.ko", make_module({"depends="}));
    scratch_.write(directory + "/modules.order", text_bytes("kernel/a.ko\n"));
  }
  Kernel kernel(const std::string& file) {
    return {.name = "mine", .vmlinuz = scratch_.write(file, make_vmlinux())};
  }
  std::string found(const std::string& file, const std::string& directory = "") {
    const Result<Kernel> kernel = with_own_modules(
        this->kernel(file), directory.empty() ? std::filesystem::path() : scratch_.path() / directory);
    if (!kernel.ok()) return kernel.error().message;
    EXPECT_EQ(kernel->release, "9.9.9");
    return kernel->modules.empty() ? "none" : kernel->modules.lexically_relative(scratch_.path()).string();
  }
  ScratchDirectory scratch_;
};

TEST_F(OwnModules, InABuildTree) {
  put("tree");
  EXPECT_EQ(found("tree/vmlinux"), "tree");
  EXPECT_EQ(found("tree/arch/x86/boot/bzImage"), "tree");
}

TEST_F(OwnModules, BesideTheKernel) {
  put("root/lib/modules/9.9.9");
  put("root/lib/modules/9.9.8");
  EXPECT_EQ(found("root/boot/vmlinux"), "root/lib/modules/9.9.9");
  EXPECT_EQ(found("root/vmlinux"), "root/lib/modules/9.9.9");
}

TEST_F(OwnModules, WhereTheUserSays) {
  put("elsewhere/lib/modules/9.9.9");
  put("beside/tree");
  for (const char* directory : {"elsewhere", "elsewhere/lib/modules", "elsewhere/lib/modules/9.9.9"})
    EXPECT_EQ(found("beside/tree/vmlinux", directory), "elsewhere/lib/modules/9.9.9") << directory;
  scratch_.write("loose/deep/b.ko.xz", text_bytes("x"));
  EXPECT_EQ(found("beside/tree/vmlinux", "loose"), "loose");
}

TEST_F(OwnModules, NoneIsNoErrorUnlessTheUserSaysWhere) {
  EXPECT_EQ(found("alone/vmlinux"), "none");
  scratch_.write("empty/readme", {});
  EXPECT_NE(found("alone/vmlinux", "empty").find("there are no modules in "), std::string::npos);
  EXPECT_NE(found("alone/vmlinux", "missing").find("like /lib/modules/9.9.9"), std::string::npos);
}

TEST_F(OwnModules, DebiansKernelsKeepTheirs) {
  const Kernel debian{
      .name = "debian:6.1", .release = "r", .packages = {{"p", "6.1.5-1", "0"}}, .modules = "m"};
  EXPECT_EQ(with_own_modules(debian, {})->modules, "m");
  EXPECT_EQ(with_own_modules(debian, "/x").error().message,
            "debian:6.1 comes with modules of its own: leave out /x");
}

}  // namespace
}  // namespace slalom::vm
