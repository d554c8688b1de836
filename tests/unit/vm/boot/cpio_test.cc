#include "vm/boot/cpio.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/kernel_store/kernel_files.h"

namespace slalom::vm {
namespace {

struct Entry {
  uint32_t inode, mode, user, group, links, time, major, minor;
  std::string contents;
};

// An independent reader, written from the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst.
std::vector<std::pair<std::string, Entry>> read_archive(const Bytes& bytes) {
  std::vector<std::pair<std::string, Entry>> entries;
  const std::string text(bytes.begin(), bytes.end());
  size_t at = 0;
  const auto aligned = [](size_t n) { return (n + 3) & ~size_t{3}; };
  for (;;) {
    EXPECT_EQ(text.substr(at, 6), "070701") << "at " << at;
    if (text.substr(at, 6) != "070701") return entries;
    const auto field = [&](size_t i) {
      return static_cast<uint32_t>(std::stoul(text.substr(at + 6 + 8 * i, 8), nullptr, 16));
    };
    const std::string name = text.substr(at + 110, field(11) - 1);
    EXPECT_EQ(text[at + 110 + name.size()], '\0');
    const size_t data = aligned(at + 110 + field(11));
    Entry entry{field(0), field(1),  field(2),
                field(3), field(4),  field(5),
                field(9), field(10), text.substr(data, field(6))};
    at = aligned(data + field(6));
    if (name == "TRAILER!!!") break;
    entries.emplace_back(name, entry);
  }
  EXPECT_EQ(bytes.size() % 512, 0u);
  EXPECT_EQ(text.find_first_not_of('\0', at), std::string::npos);
  return entries;
}

TEST(Cpio, OneFileByteForByte) {
  CpioArchive archive;
  ASSERT_TRUE(archive.add_file("a", 0644, text_bytes("hello")).ok());
  std::string expected =
      "070701"
      "00000000"  // inode
      "000081A4"  // a regular file, rw-r--r--
      "0000000000000000"
      "00000001"
      "00000000"  // time
      "00000005"
      "0000000000000000"
      "0000000000000000"
      "00000002"
      "00000000"
      "a";
  expected += std::string(1, '\0');
  expected += "hello" + std::string(3, '\0');
  expected +=
      "07070100000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000B"
      "00000000"
      "TRAILER!!!";
  expected.resize(512);
  EXPECT_EQ(archive.bytes(), text_bytes(expected));
}

TEST(Cpio, EveryKindOfEntryIsReadBack) {
  CpioArchive archive;
  ASSERT_TRUE(archive.add_file("/usr/bin/tool", 04755, text_bytes("#!")).ok());
  ASSERT_TRUE(archive.add_symlink("bin/sh", "/bin/busybox").ok());
  ASSERT_TRUE(archive.add_character_device("dev/ttyS0", 0600, 4, 64).ok());
  ASSERT_TRUE(archive.add_directory("tmp/", 01777).ok());
  ASSERT_TRUE(archive.add_file("empty", 0600, {}).ok());
  const auto entries = read_archive(archive.bytes());
  std::vector<std::string> names;
  std::map<std::string, Entry> by_name;
  for (size_t i = 0; i < entries.size(); ++i) {
    names.push_back(entries[i].first);
    by_name.insert(entries[i]);
    EXPECT_EQ(entries[i].second.inode, i);
    EXPECT_EQ(entries[i].second.user + entries[i].second.group + entries[i].second.time, 0u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"bin", "bin/sh", "dev", "dev/ttyS0", "empty", "tmp", "usr",
                                             "usr/bin", "usr/bin/tool"}));
  EXPECT_EQ(by_name["bin"].mode, 0040755u);
  EXPECT_EQ(by_name["bin"].links, 2u);
  EXPECT_EQ(by_name["bin/sh"].mode, 0120777u);
  EXPECT_EQ(by_name["bin/sh"].contents, "/bin/busybox");
  EXPECT_EQ(by_name["dev/ttyS0"].mode, 0020600u);
  EXPECT_EQ(by_name["dev/ttyS0"].major, 4u);
  EXPECT_EQ(by_name["dev/ttyS0"].minor, 64u);
  EXPECT_EQ(by_name["tmp"].mode, 0041777u);
  EXPECT_EQ(by_name["usr/bin/tool"].mode, 0104755u);
  EXPECT_EQ(by_name["usr/bin/tool"].contents, "#!");
  EXPECT_EQ(by_name["empty"].contents, "");
}

TEST(Cpio, TheOrderOfAddingDoesNotMatter) {
  CpioArchive one, two;
  ASSERT_TRUE(one.add_file("x/a", 0644, text_bytes("1")).ok());
  ASSERT_TRUE(one.add_file("x-b", 0644, text_bytes("2")).ok());
  ASSERT_TRUE(two.add_file("./x-b", 0644, text_bytes("2")).ok());
  ASSERT_TRUE(two.add_file("x//a", 0644, text_bytes("1")).ok());
  EXPECT_EQ(one.bytes(), two.bytes());
}

TEST(Cpio, WhatIsAddedAgainReplacesButNotAcrossKinds) {
  CpioArchive archive;
  ASSERT_TRUE(archive.add_symlink("bin/ls", "busybox").ok());
  ASSERT_TRUE(archive.add_file("bin/ls", 0755, text_bytes("mine")).ok());
  EXPECT_TRUE(archive.has("/bin/ls"));
  EXPECT_EQ(read_archive(archive.bytes())[1].second.contents, "mine");
  EXPECT_FALSE(archive.add_file("bin", 0644, {}).ok());
  EXPECT_FALSE(archive.add_file("bin/ls/x", 0644, {}).ok());
  EXPECT_FALSE(archive.add_directory("bin/ls").ok());
}

TEST(Cpio, PathsThatLeadElsewhereAreRefused) {
  CpioArchive archive;
  for (const std::string& path : {std::string(), std::string("/"), std::string("../x"), std::string("a/../b"),
                                  std::string("a\0b", 3), std::string(5000, 'a')})
    EXPECT_FALSE(archive.add_file(path, 0644, {}).ok()) << path;
  EXPECT_FALSE(archive.add_symlink("a", "").ok());
}

}  // namespace
}  // namespace slalom::vm
