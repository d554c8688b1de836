#include "vm/snapshot/snapshot_file.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/container.h"
#include "vm/snapshot/layout_hash.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kChunkPages = 1024;
constexpr int kCompressionLevel = 3;
// The state of CPUs and devices needs some ten kilobytes, plus the text typed ahead. The limit keeps a
// damaged count from causing a large allocation.
constexpr size_t kMaxRest = 1 << 20;

uint64_t machine_layout() {
  return combine(kMachineVersion, kNanosecondsPerInstruction, kTscKhz, layout_hash<Pc::Rest>());
}

bool is_zero(const uint8_t* page) {
  return page[0] == 0 && std::memcmp(page, page + 1, kPageSize - 1) == 0;
}

std::vector<uint8_t> encode_rest(const Pc::Rest& rest) {
  ByteWriter out;
  StateWriter state(out);
  state(rest.turns);
  for (const Registers& registers : rest.cpus) state(registers);
  for (const uint8_t privilege : rest.privileges) state(privilege);
  state(rest.devices);
  return out.take();
}

bool decode_rest(std::span<const uint8_t> bytes, unsigned cpus, Pc::Rest& rest) {
  ByteReader in(bytes);
  StateReader state(in);
  state(rest.turns);
  rest.cpus.resize(cpus);
  for (Registers& registers : rest.cpus) state(registers);
  rest.privileges.resize(cpus);
  for (uint8_t& privilege : rest.privileges) state(privilege);
  state(rest.devices);
  return in.ok() && in.at_end();
}

void encode_pages(ByteWriter& out, const Ram& ram, std::span<const uint32_t> pages) {
  std::vector<uint8_t> contents;
  contents.reserve(pages.size() * kPageSize);
  out.u64(pages.size());
  uint64_t next = 0;
  for (const uint32_t page : pages) {
    out.u64(page - next);
    next = page + uint64_t{1};
    contents.insert(contents.end(), ram.page_data(page), ram.page_data(page) + kPageSize);
  }
  std::string packed(ZSTD_compressBound(contents.size()), '\0');
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), contents.data(), contents.size(), kCompressionLevel);
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  CHECK(ZSTD_isError(size) == 0, "zstd: {}", ZSTD_getErrorName(size));
  packed.resize(size);
  out.text(packed);
}

// Returns false if the chunk's pages do not fit this RAM.
bool decode_pages(ByteReader& in, Ram& ram) {
  const uint64_t count = in.count();
  if (count == 0 || count > kChunkPages) return false;
  std::vector<uint64_t> pages;
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t skipped = in.u64();
    if (!in.ok() || next >= ram.pages() || skipped >= ram.pages() - next) return false;
    pages.push_back(next + skipped);
    next = pages.back() + 1;
  }
  const std::string packed = in.text();
  std::vector<uint8_t> contents(count * kPageSize);
  const size_t size = ZSTD_decompress(contents.data(), contents.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != contents.size()) return false;
  for (uint64_t i = 0; i < count; ++i)
    if (!ram.write(ram.address_of(pages[i]), std::span(contents).subspan(i * kPageSize, kPageSize)))
      return false;
  return true;
}

}  // namespace

Result<std::vector<uint8_t>> encode_snapshot(Booted& machine) {
  Pc& pc = *machine.pc;
  const std::vector<uint8_t> rest = encode_rest(pc.rest());
  if (rest.size() > kMaxRest)
    return error(
        "the guest still has {} bytes of typed or piped input to read; save it when it has read them",
        rest.size());
  ByteWriter out;
  out.fixed64(machine_layout());
  out.text(machine.kernel);
  out.text(machine.identity);
  out.u64(pc.cpu_count());
  out.u64(pc.ram().size());
  out.fixed64(pc.state_hash());
  out.text({reinterpret_cast<const char*>(rest.data()), rest.size()});

  const Ram& ram = pc.ram();
  std::vector<uint32_t> used;
  for (uint64_t page = 0; page < ram.pages(); ++page)
    if (!is_zero(ram.page_data(page))) used.push_back(static_cast<uint32_t>(page));
  out.u64((used.size() + kChunkPages - 1) / kChunkPages);
  for (size_t first = 0; first < used.size(); first += kChunkPages) {
    encode_pages(out, ram,
                 std::span(used).subspan(first, std::min<size_t>(kChunkPages, used.size() - first)));
    if (out.bytes().size() > kMaxPayload)
      return error("the machine needs more than {} bytes even when compressed; give it less memory",
                   kMaxPayload);
  }
  return out.take();
}

Result<Booted> decode_snapshot(std::span<const uint8_t> payload) {
  const auto malformed = [] { return error("malformed: its contents are no machine; write it again"); };
  ByteReader in(payload);
  const uint64_t layout = in.fixed64();
  Booted machine{.pc = nullptr, .kernel = in.text(), .identity = in.text()};
  const uint64_t cpus = in.u64();
  const uint64_t memory = in.u64();
  const uint64_t hash = in.fixed64();
  if (!in.ok()) return malformed();
  if (layout != machine_layout())
    return error("made by another version of slalom's machine, which might go on differently; boot {} again",
                 machine.kernel);
  if (cpus < 1 || cpus > 8) return malformed();
  const std::string rest_bytes = in.text();
  if (!in.ok() || rest_bytes.size() > kMaxRest) return malformed();
  Pc::Rest rest;
  if (!decode_rest({reinterpret_cast<const uint8_t*>(rest_bytes.data()), rest_bytes.size()},
                   static_cast<unsigned>(cpus), rest))
    return malformed();

  TRY_ASSIGN(machine.pc, Pc::make({.cpus = static_cast<unsigned>(cpus), .memory = memory}));
  for (uint64_t chunks = in.count(); chunks > 0; --chunks)
    if (!decode_pages(in, machine.pc->ram())) return malformed();
  if (!in.ok() || !in.at_end()) return malformed();
  const Result<void> taken = machine.pc->set_rest(rest);
  if (!taken.ok()) return error("malformed: {}; write it again", taken.error().message);
  if (machine.pc->state_hash() != hash)
    return error("malformed: it does not give the machine that was saved; write it again");
  return machine;
}

Result<void> save_snapshot(const std::filesystem::path& path, Booted& machine) {
  TRY_ASSIGN(const std::vector<uint8_t> payload, encode_snapshot(machine));
  return write_container(path, FileKind::Snapshot, payload);
}

Result<Booted> load_snapshot(const std::filesystem::path& path) {
  TRY_ASSIGN(const std::vector<uint8_t> payload, read_container(path, FileKind::Snapshot));
  auto machine = decode_snapshot(payload);
  if (!machine.ok()) return error("{}: {}", path.string(), machine.error().message);
  return machine;
}

}  // namespace slalom::vm
