#include "base/container.h"

#include <xxhash.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "base/file.h"

namespace slalom {
namespace {

// Like PNG's magic: a byte with its top bit set and a newline reveal transfers that damage binary files.
constexpr std::array<uint8_t, 8> kMagic = {0x89, 's', 'l', 'a', 'l', 'o', 'm', '\n'};
constexpr size_t kChecksumAt = 32;
constexpr int kCompressionLevel = 3;
// A block of zstd takes at least 4 bytes and yields at most 128 KiB. A file that claims more is damaged, and
// is refused before any allocation for it.
constexpr uint64_t kMaxRatio = 128 * 1024 / 4;

enum class Encoding : uint32_t { Stored = 0, Zstd = 1, Blocks = 2 };

struct KindFacts {
  FileKind kind;
  uint16_t version;  // the newest version, which is the one written
  std::string_view name;
  std::string_view use;  // what to do with a file of this kind
};
constexpr std::array<KindFacts, 5> kKinds = {{
    {FileKind::Schedule, 1, "schedule", "it does not name its target; use the capsule of the finding"},
    {FileKind::Trace, 3, "trace", "use `slalom trace` or `slalom detect` for it"},
    {FileKind::Capsule, 5, "capsule", "use `slalom replay` for it"},
    {FileKind::SearchState, 7, "search state", "use `slalom explore --state` for it"},
    {FileKind::Snapshot, 1, "snapshot", "use `slalom boot --load` for it"},
}};

const KindFacts* find_facts(uint16_t raw) {
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindFacts& f) { return f.kind == FileKind{raw}; });
  return found == kKinds.end() ? nullptr : &*found;
}

const KindFacts& facts_of(FileKind kind) {
  const KindFacts* facts = find_facts(static_cast<uint16_t>(kind));
  CHECK(facts != nullptr, "file kind {}", static_cast<int>(kind));
  return *facts;
}

template <typename T>
T get(std::span<const uint8_t> bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i));
  return value;
}

template <typename T>
void put(std::span<uint8_t> bytes, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t file_checksum(std::span<const uint8_t> file) {
  return checksum(file.first(kChecksumAt), file.subspan(kContainerHeader));
}

// Of a header whose checksum is right.
Result<void> check_kind(std::span<const uint8_t> header, const KindFacts& facts) {
  const auto raw_kind = get<uint16_t>(header, 8);
  const auto version = get<uint16_t>(header, 10);
  const KindFacts* actual = find_facts(raw_kind);
  if (actual == nullptr)
    return error("made by a newer slalom (file kind {} is unknown here); update slalom", raw_kind);
  if (actual != &facts) return error("this is a {}, not a {}; {}", actual->name, facts.name, actual->use);
  if (version > facts.version)
    return error("made by a newer slalom ({} version {}, this one reads up to {}); update slalom", facts.name,
                 version, facts.version);
  if (version == 0) return error("malformed: {} version 0 never existed; write it again", facts.name);
  return {};
}

// Of a file in blocks, the checksum covers the header alone.
bool is_header_of_blocks(std::span<const uint8_t> file) {
  return get<uint32_t>(file, 12) == static_cast<uint32_t>(Encoding::Blocks) &&
         get<uint64_t>(file, kChecksumAt) == checksum(file.first(kChecksumAt));
}

// zstd allocates memory itself. `result`: a return value of one of its functions.
void check_memory(size_t result) {
  if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) throw std::bad_alloc();
}

// Returns the compressed payload, or nothing if it is not smaller.
std::vector<uint8_t> compress(std::span<const uint8_t> payload) {
  std::vector<uint8_t> bytes(ZSTD_compressBound(payload.size()));
  const size_t size =
      ZSTD_compress(bytes.data(), bytes.size(), payload.data(), payload.size(), kCompressionLevel);
  check_memory(size);
  CHECK(ZSTD_isError(size) == 0, "zstd: {}", ZSTD_getErrorName(size));
  bytes.resize(size < payload.size() ? size : 0);
  return bytes;
}

}  // namespace

std::string_view name(FileKind kind) {
  return facts_of(kind).name;
}

uint16_t container_version(std::span<const uint8_t> file) {
  return get<uint16_t>(file, 10);
}

uint64_t checksum(std::span<const uint8_t> bytes, std::span<const uint8_t> more) {
  if (more.empty()) return XXH3_64bits(bytes.data(), bytes.size());
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
  XXH3_64bits_update(state.get(), more.data(), more.size());
  return XXH3_64bits_digest(state.get());
}

bool has_container_magic(std::span<const uint8_t> file) {
  const size_t seen = std::min(file.size(), kMagic.size());
  return std::equal(kMagic.begin(), kMagic.begin() + static_cast<ptrdiff_t>(seen), file.begin());
}

std::vector<uint8_t> block_file_header(FileKind kind) {
  std::vector<uint8_t> header(kContainerHeader);
  std::copy(kMagic.begin(), kMagic.end(), header.begin());
  put(header, 8, static_cast<uint16_t>(kind));
  put(header, 10, facts_of(kind).version);
  put(header, 12, static_cast<uint32_t>(Encoding::Blocks));
  put(header, kChecksumAt, checksum(std::span<const uint8_t>(header).first(kChecksumAt)));
  return header;
}

Result<bool> is_block_file(std::span<const uint8_t> header, FileKind expected) {
  if (header.size() < kContainerHeader || !has_container_magic(header) || !is_header_of_blocks(header))
    return false;
  TRY(check_kind(header, facts_of(expected)));
  return true;
}

void repair_checksum(std::span<uint8_t> file) {
  if (file.size() >= kContainerHeader) put(file, kChecksumAt, file_checksum(file));
}

Result<std::vector<uint8_t>> pack_container(FileKind kind, std::span<const uint8_t> payload) {
  const KindFacts& facts = facts_of(kind);
  if (payload.size() > kMaxPayload)
    return error("this {} has {} bytes and a file holds at most {}; limit the execution with --max-steps",
                 facts.name, payload.size(), kMaxPayload);
  const std::vector<uint8_t> compressed = compress(payload);
  const Encoding encoding = compressed.empty() ? Encoding::Stored : Encoding::Zstd;
  const std::span<const uint8_t> stored = compressed.empty() ? payload : compressed;

  std::vector<uint8_t> file(kContainerHeader);
  std::copy(kMagic.begin(), kMagic.end(), file.begin());
  put(file, 8, static_cast<uint16_t>(kind));
  put(file, 10, facts.version);
  put(file, 12, static_cast<uint32_t>(encoding));
  put(file, 16, static_cast<uint64_t>(payload.size()));
  put(file, 24, static_cast<uint64_t>(stored.size()));
  file.insert(file.end(), stored.begin(), stored.end());
  repair_checksum(file);
  return file;
}

Result<std::vector<uint8_t>> unpack_container(std::span<const uint8_t> file, FileKind expected) {
  const KindFacts& facts = facts_of(expected);
  if (file.empty()) return error("empty file, not a {}; write it again", facts.name);
  if (!has_container_magic(file)) return error("not a slalom file; a {} is needed here", facts.name);
  if (file.size() < kContainerHeader)
    return error("truncated: {} of at least {} bytes; fetch it again", file.size(), kContainerHeader);
  if (is_header_of_blocks(file)) {
    TRY(check_kind(file, facts));
    return error("malformed: no {} is written in blocks; write it again", facts.name);
  }
  const auto stored_size = get<uint64_t>(file, 24);
  const std::span<const uint8_t> stored = file.subspan(kContainerHeader);
  if (stored.size() < stored_size)
    return error("truncated: {} of {} bytes of contents; fetch it again", stored.size(), stored_size);
  if (stored.size() > stored_size)
    return error("corrupted: {} bytes too many at its end; fetch it again", stored.size() - stored_size);
  if (get<uint64_t>(file, kChecksumAt) != file_checksum(file))
    return error("corrupted: its checksum does not match its contents; fetch it again");

  // The checksum is right, so the rest is what the writer wrote.
  TRY(check_kind(file, facts));

  const auto payload_size = get<uint64_t>(file, 16);
  if (payload_size > kMaxPayload)
    return error("malformed: it claims {} bytes of contents, more than the limit of {}; write it again",
                 payload_size, kMaxPayload);
  switch (Encoding{get<uint32_t>(file, 12)}) {
    case Encoding::Stored:
      if (payload_size != stored_size)
        return error("malformed: it claims {} bytes of contents and has {}; write it again", payload_size,
                     stored_size);
      return std::vector<uint8_t>(stored.begin(), stored.end());
    case Encoding::Blocks:
      return error("malformed: its header claims blocks, and sizes; write it again");
    case Encoding::Zstd: {
      if (payload_size > stored_size * kMaxRatio)
        return error("malformed: {} bytes cannot expand to {}; write it again", stored_size, payload_size);
      std::vector<uint8_t> payload(payload_size);
      const size_t size = ZSTD_decompress(payload.data(), payload.size(), stored.data(), stored.size());
      check_memory(size);
      if (ZSTD_isError(size) != 0 || size != payload_size)
        return error("malformed: its contents do not decompress to {} bytes; write it again", payload_size);
      return payload;
    }
  }
  return error("made by a newer slalom (encoding {} is unknown here); update slalom",
               get<uint32_t>(file, 12));
}

Result<void> write_container(const std::filesystem::path& path, FileKind kind,
                             std::span<const uint8_t> payload) {
  TRY_ASSIGN(const std::vector<uint8_t> file, pack_container(kind, payload));
  return write_output(path, file);
}

Result<std::vector<uint8_t>> read_container(const std::filesystem::path& path, FileKind expected) {
  TRY_ASSIGN(const std::vector<uint8_t> file, read_file(path));
  auto payload = unpack_container(file, expected);
  if (!payload.ok()) return error("{}: {}", path.string(), payload.error().message);
  return payload;
}

}  // namespace slalom
