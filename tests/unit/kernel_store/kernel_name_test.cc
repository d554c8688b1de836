#include "kernel_store/kernel_name.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/child.h"

namespace slalom::vm {
namespace {

KernelName name(std::string_view text) {
  const Result<KernelName> parsed = parse_kernel_name(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << parsed.error().message;
  return parsed.ok() ? *parsed : KernelName();
}

std::string refusal(std::string_view text) {
  const Result<KernelName> parsed = parse_kernel_name(text);
  return parsed.ok() ? "accepted" : parsed.error().message;
}

TEST(KernelName, VersionFlavourAndBuild) {
  EXPECT_EQ(name("debian:6.1"), (KernelName{"6.1", "cloud", ""}));
  EXPECT_EQ(name("debian:6.1:rt"), (KernelName{"6.1", "rt", ""}));
  EXPECT_EQ(name("debian:5.10=5.10.218-1"), (KernelName{"5.10", "cloud", "5.10.218-1"}));
  EXPECT_EQ(name("debian:6.12:amd64=6.12.43-1~bpo12+1"), (KernelName{"6.12", "amd64", "6.12.43-1~bpo12+1"}));
  EXPECT_EQ(name("debian:sid=7.1.2-1~exp1"), (KernelName{"sid", "cloud", "7.1.2-1~exp1"}));
}

TEST(KernelName, OneSpellingForEach) {
  EXPECT_EQ(name("debian:6.1:cloud").text(), "debian:6.1");
  EXPECT_EQ(name("debian:6.1:cloud-amd64=6.1.9-1").text(), "debian:6.1=6.1.9-1");
  EXPECT_EQ(name("debian:6.1:rt-amd64").text(), "debian:6.1:rt");
  EXPECT_EQ(name("debian:6.1:rt=6.1.9-1").without_build().text(), "debian:6.1:rt");
}

TEST(KernelName, WrongOnesAreExplained) {
  EXPECT_NE(refusal("debian:7.1").find("slalom knows debian:5.10, debian:6.1, debian:6.12, debian:sid"),
            std::string::npos);
  EXPECT_NE(refusal("debian:6.1:arm64").find("no flavour \"arm64\"; there are cloud, amd64, rt"),
            std::string::npos);
  for (const char* wrong : {"debian:6.1=", "debian:6.1=5.10.218-1", "debian:6.1=6.12.1-1",
                            "debian:6.1=6.1.5 -1", "debian:6.1=6.1.5\n", "debian:sid=latest"})
    EXPECT_NE(refusal(wrong).find("is no build of"), std::string::npos) << wrong;
  EXPECT_NE(refusal("debian:5.10=5.9").find("slalom kernel list debian:5.10 --available"), std::string::npos);
  for (const char* wrong : {"", "debian", "debian:", "6.1", "debian:../x", "debian:6.1=../x", "debian:6.1/x"})
    EXPECT_NE(refusal(wrong), "accepted") << wrong;
}

TEST(KernelName, PathsAreNoNames) {
  EXPECT_TRUE(looks_like_kernel_name("debian:7.1"));
  EXPECT_FALSE(looks_like_kernel_name("./debian:6.1"));
  EXPECT_FALSE(looks_like_kernel_name("vmlinux"));
}

TEST(KernelName, BuildsInTheOrderOfDpkg) {
  const std::vector<std::string> builds = {
      "5.10.218-1",     "5.10.223-1", "6.1.99-1",          "6.1.172-1~deb11u1", "6.1.172-1",
      "6.1.172-2",      "6.12.9-1",   "6.12.43-1~bpo12+1", "6.12.43-1",         "6.12.115-2~deb12u1",
      "7.1~rc3-1~exp1", "7.1-1",      "7.1.0-1",           "7.1+dfsg-1",        "07.1-1"};
  for (size_t i = 0; i + 1 < builds.size(); ++i) {
    const std::string &a = builds[i], &b = builds[i + 1];
    for (const auto& [left, right] : {std::pair(a, b), std::pair(b, a)}) {
      const auto dpkg =
          run_child({.program = "dpkg", .arguments = {"--compare-versions", left, "lt", right}}, "dpkg");
      if (!dpkg.ok()) GTEST_SKIP() << dpkg.error().message;
      EXPECT_EQ(is_older_build(left, right), dpkg->status == 0) << left << " < " << right;
    }
  }
}

}  // namespace
}  // namespace slalom::vm
