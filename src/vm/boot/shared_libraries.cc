#include "vm/boot/shared_libraries.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/little_endian.h"
#include "kernel_store/elf_file.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kDynamic = 2;
constexpr uint64_t kNeeded = 1, kStringTable = 5;
constexpr size_t kMaxLibraryName = 4096;
constexpr size_t kMaxNeeded = 1024;

constexpr const char* kDirectories[] = {
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"};

std::string text_at(std::span<const uint8_t> bytes, uint64_t offset) {
  std::string text;
  for (uint64_t i = offset; i < bytes.size() && bytes[i] != 0 && text.size() < kMaxLibraryName; ++i)
    text += static_cast<char>(bytes[i]);
  return text;
}

// Returns the file offset of the byte that the program sees at `address`.
std::optional<uint64_t> file_offset(const ElfFile& elf, uint64_t address) {
  for (const ElfSegment& segment : elf.segments) {
    if (segment.type == ElfFile::kLoad && address >= segment.virtual_address &&
        address - segment.virtual_address < segment.file_size)
      return segment.offset + (address - segment.virtual_address);
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_library(const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos) {
    if (std::filesystem::exists(name, ignored)) return name;
    return std::nullopt;
  }
  for (const char* directory : kDirectories) {
    const std::filesystem::path path = std::filesystem::path(directory) / name;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return std::nullopt;
}

}  // namespace

SharedObjects shared_objects(std::span<const uint8_t> bytes) {
  SharedObjects objects;
  const Result<ElfFile> elf = is_elf(bytes) ? parse_elf(bytes) : Result<ElfFile>(Error{"no ELF file"});
  if (!elf.ok() || !elf->is_64bit || elf->machine != ElfFile::kX86_64) return objects;
  for (const ElfSegment& segment : elf->segments) {
    const auto part = part_of(bytes, segment.offset, segment.file_size);
    if (!part) continue;
    if (segment.type == ElfFile::kInterpreter) objects.interpreter = text_at(*part, 0);
    if (segment.type != kDynamic) continue;
    std::optional<uint64_t> strings;
    std::vector<uint64_t> names;
    for (uint64_t at = 0; at + 16 <= part->size() && names.size() < kMaxNeeded; at += 16) {
      const uint64_t tag = *get_le<uint64_t>(*part, at);
      const uint64_t value = *get_le<uint64_t>(*part, at + 8);
      if (tag == 0) break;
      if (tag == kNeeded) names.push_back(value);
      if (tag == kStringTable) strings = file_offset(*elf, value);
    }
    if (!strings) continue;
    for (const uint64_t name : names)
      if (name < bytes.size()) objects.needed.push_back(text_at(bytes, *strings + name));
  }
  return objects;
}

Result<void> for_each_shared_object(
    const std::string& name, std::span<const uint8_t> bytes,
    const std::function<Result<void>(const std::filesystem::path&, std::vector<uint8_t>)>& use) {
  std::set<std::filesystem::path> seen;
  std::vector<std::string> todo;
  const auto add = [&](const SharedObjects& objects) {
    if (!objects.interpreter.empty()) todo.push_back(objects.interpreter);
    todo.insert(todo.end(), objects.needed.begin(), objects.needed.end());
  };
  add(shared_objects(bytes));
  while (!todo.empty()) {
    const std::string wanted = todo.back();
    todo.pop_back();
    const std::optional<std::filesystem::path> path = find_library(wanted);
    if (!path)
      return error(
          "{} needs {}, which is not among this system's libraries: link it statically, or add that file and "
          "set "
          "LD_LIBRARY_PATH in the guest",
          name, wanted);
    if (!seen.insert(*path).second) continue;
    TRY_ASSIGN(std::vector<uint8_t> library, read_file(*path));
    add(shared_objects(library));
    TRY(use(*path, std::move(library)));
  }
  return {};
}

}  // namespace slalom::vm
