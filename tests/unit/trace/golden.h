// Files of earlier versions, committed under tests/golden/formats/. Every later slalom must read them.
#pragma once

#include <gtest/gtest.h>

#include "support/source_dir.h"
#include "trace/files/serialise.h"

namespace slalom {

// Checks that the golden file decodes to this value, and that the value encodes to the file's payload. If the
// file is missing, the failure message shows the contents that it needs.
template <typename T>
void expect_golden(const char* name, FileKind kind, const T& expected) {
  const auto path = std::filesystem::path(source_dir()) / "tests/golden/formats" / name;
  ByteWriter out;
  encode(out, expected);
  const auto file = read_file(path);
  if (!file.ok()) {
    const std::vector<uint8_t> wanted = *pack_container(kind, out.bytes());
    std::string hex;
    for (const uint8_t byte : wanted) hex += fmt::format("{:02x}", byte);
    FAIL() << file.error().message << "\nIts bytes, for `xxd -r -p`: " << hex;
  }
  const auto payload = unpack_container(*file, kind);
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(*payload, out.bytes()) << "the writer changed: raise the version of this kind";
  const auto decoded = from_file<T>(kind, *file);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  ByteWriter again;
  encode(again, *decoded);
  EXPECT_EQ(again.bytes(), out.bytes());
}

}  // namespace slalom
