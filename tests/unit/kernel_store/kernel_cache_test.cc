#include "kernel_store/kernel_cache.h"

#include <gtest/gtest.h>

#include "base/child.h"
#include "unit/kernel_store/kernel_files.h"
#include "unit/kernel_store/scratch_directory.h"

namespace slalom::vm {
namespace {

// A variable of the environment, for as long as a test needs it.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Environment() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(KernelCache, IsWhereTheUserWantsIt) {
  const Environment none("SLALOM_CACHE", nullptr);
  const Environment home("HOME", "/home/me");
  {
    const Environment shared("XDG_CACHE_HOME", "/var/me");
    EXPECT_EQ(*cache_directory(), "/var/me/slalom");
    const Environment own("SLALOM_CACHE", "/elsewhere");
    EXPECT_EQ(*cache_directory(), "/elsewhere");
    EXPECT_EQ(KernelCache::open()->path_of("debian:6.1"), "/elsewhere/kernels/debian:6.1");
  }
  const Environment relative("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(*cache_directory(), "/home/me/.cache/slalom");
  const Environment homeless("HOME", nullptr);
  EXPECT_FALSE(cache_directory().ok());
}

void put_kernel(const ScratchDirectory& scratch, const std::string& name,
                const std::string& version = "6.1.5-1") {
  const Kernel kernel{.name = name,
                      .release = "6.1.0-1-test",
                      .packages = {{"linux-image-test", version, "0123abcd"}},
                      .vmlinuz = scratch.write(name + "/vmlinuz", text_bytes("image"))};
  scratch.write(name + "/modules/kernel/a.ko", text_bytes("module"));
  scratch.write(name + "/kernel.txt", text_bytes(kernel_note(kernel)));
}

TEST(KernelCache, LoadsWhatWasPutThere) {
  const ScratchDirectory scratch;
  put_kernel(scratch, "debian:6.1");
  const KernelCache cache(scratch.path());
  const auto kernel = cache.load("debian:6.1");
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  EXPECT_EQ(kernel->release, "6.1.0-1-test");
  EXPECT_EQ(kernel->packages, (std::vector<KernelPackage>{{"linux-image-test", "6.1.5-1", "0123abcd"}}));
  EXPECT_EQ(kernel->vmlinuz, scratch.path() / "debian:6.1/vmlinuz");
  EXPECT_EQ(kernel->modules, scratch.path() / "debian:6.1/modules");
  EXPECT_TRUE(kernel->config.empty());
  EXPECT_EQ(cache.names(), std::vector<std::string>{"debian:6.1"});
  EXPECT_EQ(find_kernel(cache, "debian:6.1")->vmlinuz, kernel->vmlinuz);
}

TEST(KernelCache, SaysWhatToDoAboutWhatIsNotThere) {
  const ScratchDirectory scratch;
  const KernelCache cache(scratch.path());
  EXPECT_NE(find_kernel(cache, "debian:6.12").error().message.find("run: slalom kernel get debian:6.12"),
            std::string::npos);
  EXPECT_NE(find_kernel(cache, "debian:7.1").error().message.find("debian:5.10, debian:6.1"),
            std::string::npos);
  EXPECT_NE(find_kernel(cache, "no/such/file").error().message.find("no file no/such/file"),
            std::string::npos);
  EXPECT_FALSE(cache.has("../x"));
  EXPECT_FALSE(cache.load("..").ok());
  EXPECT_FALSE(cache.remove("..").ok());
  EXPECT_FALSE(cache.remove("debian:6.1").ok());
}

TEST(KernelCache, ABuildIsFoundUnderBothNames) {
  const ScratchDirectory scratch;
  put_kernel(scratch, "debian:6.1", "6.1.5-1");
  put_kernel(scratch, "debian:6.1=6.1.4-1", "6.1.4-1");
  put_kernel(scratch, "debian:6.1:rt=6.1.5-1", "6.1.5-1");
  const KernelCache cache(scratch.path());
  EXPECT_EQ(cache.load("debian:6.1=6.1.5-1")->name, "debian:6.1");
  EXPECT_EQ(cache.load("debian:6.1=6.1.4-1")->name, "debian:6.1=6.1.4-1");
  EXPECT_EQ(cache.load("debian:6.1")->exact_name(), "debian:6.1=6.1.5-1");
  EXPECT_EQ(cache.load("debian:6.1=6.1.4-1")->exact_name(), "debian:6.1=6.1.4-1");
  EXPECT_EQ(cache.load("debian:6.1:cloud")->name, "debian:6.1");
  const auto other = cache.load("debian:6.1=6.1.3-1");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(
      other.error().message,
      "the kernel debian:6.1=6.1.3-1 is not here (but debian:6.1=6.1.5-1, debian:6.1=6.1.4-1); run: slalom "
      "kernel get debian:6.1=6.1.3-1");
  EXPECT_NE(cache.load("debian:6.1:rt").error().message.find("(but debian:6.1:rt=6.1.5-1)"),
            std::string::npos);
}

TEST(KernelCache, NamesAreInAnOrderForPeople) {
  const ScratchDirectory scratch;
  for (const char* name : {"debian:sid", "debian:6.1:rt", "debian:6.1=6.1.99-1", "debian:6.1=6.1.172-1",
                           "debian:6.1", "debian:5.10"})
    put_kernel(scratch, name);
  put_kernel(scratch, "debian:6.1:cloud");  // no name that slalom gives to a directory
  put_kernel(scratch, "debian:7.1");
  EXPECT_EQ(KernelCache(scratch.path()).names(),
            (std::vector<std::string>{"debian:5.10", "debian:6.1", "debian:6.1=6.1.172-1",
                                      "debian:6.1=6.1.99-1", "debian:6.1:rt", "debian:sid"}));
}

TEST(KernelCache, AUsersOwnFileIsAKernelToo) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("bzImage", text_bytes("x")).string();
  const auto kernel = find_kernel(KernelCache(scratch.path()), path);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->vmlinuz, path);
  EXPECT_TRUE(kernel->modules.empty());
}

TEST(KernelCache, DamageIsNoticed) {
  const ScratchDirectory scratch;
  const KernelCache cache(scratch.path());
  for (const char* note :
       {"", "Name: debian:sid\nRelease: r\nPackages: a b c\n", "Name: debian:6.1\nPackages: a b c\n",
        "Name: debian:6.1\nRelease: r\nPackages: a b\n"}) {
    put_kernel(scratch, "debian:6.1");
    scratch.write("debian:6.1/kernel.txt", text_bytes(note));
    const auto kernel = cache.load("debian:6.1");
    ASSERT_FALSE(kernel.ok()) << note;
    EXPECT_NE(kernel.error().message.find("slalom kernel get debian:6.1"), std::string::npos);
  }
  put_kernel(scratch, "debian:6.1");
  std::filesystem::remove(scratch.path() / "debian:6.1/vmlinuz");
  EXPECT_FALSE(cache.load("debian:6.1").ok());
  put_kernel(scratch, "debian:6.1");
  std::filesystem::resize_file(scratch.path() / "debian:6.1/vmlinuz", 3);
  const auto cut = cache.load("debian:6.1");
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("is damaged; run: slalom kernel get debian:6.1"), std::string::npos);
}

TEST(KernelCache, RemovesAllOfOneAndNothingElse) {
  const ScratchDirectory scratch;
  put_kernel(scratch, "debian:6.1");
  put_kernel(scratch, "debian:sid");
  const KernelCache cache(scratch.path());
  ASSERT_TRUE(cache.remove("debian:6.1").ok());
  EXPECT_EQ(cache.names(), std::vector<std::string>{"debian:sid"});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(Child, OutputErrorsStatusDirectoryAndEnvironment) {
  const auto done =
      run_child({.program = "sh",
                 .arguments = {"-c", "pwd; echo \"$COLOUR $1\"; echo oh >&2; cat; exit 7", "sh", "a; b"},
                 .directory = "/",
                 .environment = {{"COLOUR", "green"}}},
                "dash");
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->output, "/\ngreen a; b\n");
  EXPECT_EQ(done->errors, "oh\n");
  EXPECT_EQ(done->status, 7);
  EXPECT_EQ(run_child({.program = "sh", .arguments = {"-c", "kill -9 $$"}}, "dash")->status, 128 + 9);
  const auto big = run_child(
      {.program = "sh", .arguments = {"-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero"}},
      "dash");
  EXPECT_EQ(big->output.size() + big->errors.size(), 600'000u);
}

TEST(Child, AMissingProgramNamesItsPackage) {
  const auto done = run_child({.program = "no-such-program-here"}, "some-package");
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().message.find("install the Debian package some-package"), std::string::npos);
}

}  // namespace
}  // namespace slalom::vm
