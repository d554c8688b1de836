#include "kernel_store/debian_mirror.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "kernel_store/control_file.h"

namespace slalom::vm {
namespace {

TEST(ControlFile, StanzasFieldsAndContinuations) {
  const auto stanzas = parse_control(
      "Package: a\nDepends: x,\n y\n# a comment\n z\n\n\n  \nPackage: b\nno field\nDescription:\n more\n");
  ASSERT_EQ(stanzas.size(), 2u);
  EXPECT_EQ(stanzas[0].field("package"), "a");
  EXPECT_EQ(stanzas[0].field("Depends"), "x,\ny\nz");
  EXPECT_EQ(stanzas[1].field("Package"), "b");
  EXPECT_EQ(stanzas[1].field("Description"), "more");
  EXPECT_EQ(stanzas[1].field("Depends"), "");
}

TEST(ControlFile, WhatIsWrittenIsReadBack) {
  Stanza stanza;
  stanza.add("Name", "n");
  stanza.add("Packages", "\na 1 x\nb 2 y");
  EXPECT_EQ(stanza.text(), "Name: n\nPackages:\n a 1 x\n b 2 y\n");
  EXPECT_EQ(parse_control(stanza.text())[0].field("Packages"), "a 1 x\nb 2 y");
}

TEST(DebianMirror, OneLineSources) {
  DebianMirrors mirrors;
  add_one_line_sources(
      "# deb http://commented.out/debian bookworm main\n"
      "deb [arch=amd64 signed-by=/k.gpg] http://a.example/debian bookworm main contrib\n"
      "deb-src http://sources.example/debian bookworm main\n"
      "deb http://s.example/debian-security bookworm-security main # why\n"
      "deb http://a.example/debian bookworm-updates main\n"
      "deb https://other.example/apt cloud-sdk-bookworm main\n"
      "deb cdrom:[Debian 12]/ bookworm main\n"
      "deb http://nothing.example/debian bookworm contrib\n"
      "deb [broken http://b.example/debian bookworm main\n",
      mirrors);
  EXPECT_EQ(mirrors, (DebianMirrors{{"http://a.example/debian"}, {"http://s.example/debian-security"}}));
}

TEST(DebianMirror, Deb822Sources) {
  DebianMirrors mirrors;
  add_deb822_sources(
      "Types: deb deb-src\n# http://comment.example/debian\nURIs: http://a.example/debian "
      "http://b.example/debian\n"
      "Suites: trixie trixie-updates\nComponents: main\n\n"
      "Types: deb\nURIs: http://s.example/debian-security\nSuites: trixie-security\nComponents: main\n\n"
      "Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: sid\nComponents: main\n\n"
      "Types: deb\nURIs: https://node.example/x\nSuites: nodistro\nComponents: main\n",
      mirrors);
  EXPECT_EQ(mirrors, (DebianMirrors{{"http://a.example/debian", "http://b.example/debian"},
                                    {"http://s.example/debian-security"}}));
}

TEST(DebianMirror, ConfiguredOnesComeBeforeDebiansOwnAndLikelyOnesFirst) {
  char name[] = "/tmp/slalom-mirror-XXXXXX";
  const std::filesystem::path directory = mkdtemp(name);
  std::filesystem::create_directories(directory / "sources.list.d");
  ASSERT_TRUE(
      write_file(directory / "sources.list.d/b.list", "deb http://docker.example/linux bookworm main\n")
          .ok());
  ASSERT_TRUE(write_file(directory / "sources.list.d/c.sources",
                         "Types: deb\nURIs: http://m.example/debian/\nSuites: bookworm\nComponents: main\n")
                  .ok());
  ASSERT_TRUE(
      write_file(directory / "sources.list.d/d.list.disabled", "deb http://x.example/debian sid main\n")
          .ok());
  EXPECT_EQ(configured_mirrors(directory),
            (DebianMirrors{
                {"http://m.example/debian/", "http://docker.example/linux", "http://deb.debian.org/debian"},
                {"http://security.debian.org/debian-security"}}));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace slalom::vm
