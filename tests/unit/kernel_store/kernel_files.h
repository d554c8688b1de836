// Small kernel files, made field by field from their specifications: what the loaders are tested and fuzzed
// with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/little_endian.h"

namespace slalom::vm {

using Bytes = std::vector<uint8_t>;

inline Bytes text_bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

struct TestSegment {
  uint64_t virtual_address = 0;
  uint64_t physical_address = 0;
  Bytes bytes;
  uint64_t memory_size = 0;  // 0: as many as there are bytes
  uint32_t type = 1;
};

// Header, program headers, then the segments' bytes one after the other.
inline Bytes make_elf64(uint64_t entry, const std::vector<TestSegment>& segments, uint16_t machine = 62) {
  Bytes file = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  append_le<uint16_t>(file, 2);
  append_le<uint16_t>(file, machine);
  append_le<uint32_t>(file, 1);
  append_le<uint64_t>(file, entry);
  append_le<uint64_t>(file, 64);  // program headers
  append_le<uint64_t>(file, 0);   // no sections
  append_le<uint32_t>(file, 0);
  append_le<uint16_t>(file, 64);
  append_le<uint16_t>(file, 56);
  append_le<uint16_t>(file, static_cast<uint16_t>(segments.size()));
  for (int i = 0; i < 3; ++i) append_le<uint16_t>(file, 0);
  uint64_t offset = 64 + 56 * segments.size();
  for (const TestSegment& segment : segments) {
    append_le<uint32_t>(file, segment.type);
    append_le<uint32_t>(file, 7);
    append_le<uint64_t>(file, offset);
    append_le<uint64_t>(file, segment.virtual_address);
    append_le<uint64_t>(file, segment.physical_address);
    append_le<uint64_t>(file, segment.bytes.size());
    append_le<uint64_t>(file, segment.memory_size == 0 ? segment.bytes.size() : segment.memory_size);
    append_le<uint64_t>(file, 16);
    offset += segment.bytes.size();
  }
  for (const TestSegment& segment : segments)
    file.insert(file.end(), segment.bytes.begin(), segment.bytes.end());
  return file;
}

inline Bytes make_elf32(uint32_t entry, const std::vector<TestSegment>& segments) {
  Bytes file = {0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  append_le<uint16_t>(file, 2);
  append_le<uint16_t>(file, 3);
  append_le<uint32_t>(file, 1);
  append_le<uint32_t>(file, entry);
  append_le<uint32_t>(file, 52);
  append_le<uint32_t>(file, 0);
  append_le<uint32_t>(file, 0);
  append_le<uint16_t>(file, 52);
  append_le<uint16_t>(file, 32);
  append_le<uint16_t>(file, static_cast<uint16_t>(segments.size()));
  for (int i = 0; i < 3; ++i) append_le<uint16_t>(file, 0);
  uint64_t offset = 52 + 32 * segments.size();
  for (const TestSegment& segment : segments) {
    append_le<uint32_t>(file, segment.type);
    append_le<uint32_t>(file, static_cast<uint32_t>(offset));
    append_le<uint32_t>(file, static_cast<uint32_t>(segment.virtual_address));
    append_le<uint32_t>(file, static_cast<uint32_t>(segment.physical_address));
    append_le<uint32_t>(file, static_cast<uint32_t>(segment.bytes.size()));
    append_le<uint32_t>(
        file, static_cast<uint32_t>(segment.memory_size == 0 ? segment.bytes.size() : segment.memory_size));
    append_le<uint32_t>(file, 7);
    append_le<uint32_t>(file, 16);
    offset += segment.bytes.size();
  }
  for (const TestSegment& segment : segments)
    file.insert(file.end(), segment.bytes.begin(), segment.bytes.end());
  return file;
}

// A note segment's contents: GNU build id.
inline Bytes make_build_id(const Bytes& id) {
  Bytes note;
  append_le<uint32_t>(note, 4);
  append_le<uint32_t>(note, static_cast<uint32_t>(id.size()));
  append_le<uint32_t>(note, 3);
  for (const char c : std::string_view("GNU\0", 4)) note.push_back(static_cast<uint8_t>(c));
  note.insert(note.end(), id.begin(), id.end());
  return note;
}

// A vmlinux of two segments, with a build id: enough to be taken for Linux.
inline Bytes make_vmlinux() {
  return make_elf64(0x1000040,
                    {{0xffffffff81000000, 0x1000000, text_bytes("code: Linux version 9.9.9 (test)")},
                     {0xffffffff81200000, 0x1200000, text_bytes("data"), 0x3000},
                     {0, 0, make_build_id({0xde, 0xad, 0xbe, 0xef}), 0, 4}});
}

// A bzImage of boot protocol 2.15 around `payload`, with one setup sector.
inline Bytes make_bzimage(const Bytes& payload) {
  Bytes file(1024);
  const std::span<uint8_t> all(file);
  file[0x1f1] = 1;
  put_le<uint16_t>(all, 0x1fe, 0xaa55);
  file[0x200] = 0xeb;
  file[0x201] = 0x6a;  // the header ends at 0x26c
  put_le<uint32_t>(all, 0x202, 0x53726448);
  put_le<uint16_t>(all, 0x206, 0x020f);
  put_le<uint32_t>(all, 0x22c, 0x7fffffff);
  put_le<uint32_t>(all, 0x230, 0x200000);
  put_le<uint16_t>(all, 0x236, 0x7f);
  put_le<uint32_t>(all, 0x238, 2047);
  put_le<uint32_t>(all, 0x248, 0x300);
  put_le<uint32_t>(all, 0x24c, static_cast<uint32_t>(payload.size()));
  put_le<uint64_t>(all, 0x258, 0x1000000);
  put_le<uint32_t>(all, 0x260, 0x400000);
  file.resize(file.size() + 0x300, 0x90);  // the unpacking code
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

// A multiboot header with a right checksum.
inline Bytes make_multiboot_header(uint32_t flags, const std::vector<uint32_t>& more = {}) {
  Bytes header;
  append_le<uint32_t>(header, 0x1badb002);
  append_le<uint32_t>(header, flags);
  append_le<uint32_t>(header, 0u - 0x1badb002u - flags);
  for (const uint32_t word : more) append_le<uint32_t>(header, word);
  return header;
}

// A relocatable ELF with one section .modinfo: the part of a module that says what it needs.
inline Bytes make_module(const std::vector<std::string>& info) {
  Bytes texts;
  for (const std::string& each : info) {
    texts.insert(texts.end(), each.begin(), each.end());
    texts.push_back(0);
  }
  const std::string names("\0.modinfo\0.shstrtab\0", 20);
  Bytes file = make_elf64(0, {});
  put_le<uint16_t>(std::span(file), 0x10, 1);
  const uint64_t texts_at = file.size();
  file.insert(file.end(), texts.begin(), texts.end());
  const uint64_t names_at = file.size();
  file.insert(file.end(), names.begin(), names.end());
  const uint64_t table = file.size();
  const auto section = [&](uint32_t name, uint32_t type, uint64_t offset, uint64_t size) {
    append_le<uint32_t>(file, name);
    append_le<uint32_t>(file, type);
    append_le<uint64_t>(file, 0);
    append_le<uint64_t>(file, 0);
    append_le<uint64_t>(file, offset);
    append_le<uint64_t>(file, size);
    for (int i = 0; i < 3; ++i) append_le<uint64_t>(file, 0);
  };
  section(0, 0, 0, 0);
  section(1, 1, texts_at, texts.size());
  section(10, 3, names_at, names.size());
  const std::span<uint8_t> all(file);
  put_le<uint64_t>(all, 0x28, table);
  put_le<uint16_t>(all, 0x3a, 64);
  put_le<uint16_t>(all, 0x3c, 3);
  put_le<uint16_t>(all, 0x3e, 2);
  return file;
}

}  // namespace slalom::vm
