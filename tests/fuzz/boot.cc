// The loaders: whatever a kernel file, a module or a list of sources contains, nothing is read or written
// outside.
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "base/check.h"
#include "fuzz/harness.h"
#include "kernel_store/control_file.h"
#include "kernel_store/debian_mirror.h"
#include "kernel_store/modules.h"
#include "unit/kernel_store/kernel_files.h"
#include "vm/boot/image.h"
#include "vm/boot/linux.h"
#include "vm/boot/multiboot.h"

namespace slalom {
namespace {

using vm::Bytes;

constexpr uint64_t kUnpacked = 4 << 20;  // small, so that bombs cost no time

Bytes with_length(Bytes packed, size_t length) {
  append_le<uint32_t>(packed, static_cast<uint32_t>(length));
  return packed;
}

Bytes zstd(const Bytes& plain) {
  Bytes packed(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return with_length(std::move(packed), plain.size());
}

Bytes gzip(const Bytes& plain) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  Bytes packed(deflateBound(&stream, plain.size()));
  Bytes input = plain;
  stream.next_in = input.data();
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return with_length(std::move(packed), plain.size());
}

Bytes lz4(const Bytes& plain) {
  Bytes block(static_cast<size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
  block.resize(static_cast<size_t>(
      LZ4_compress_default(reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(block.data()),
                           static_cast<int>(plain.size()), static_cast<int>(block.size()))));
  Bytes packed = {0x02, 0x21, 0x4c, 0x18};
  append_le<uint32_t>(packed, static_cast<uint32_t>(block.size()));
  packed.insert(packed.end(), block.begin(), block.end());
  return with_length(std::move(packed), plain.size());
}

void try_image(const Bytes& bytes) {
  const Result<vm::Image> image = vm::parse_image(bytes, kUnpacked);
  if (!image.ok()) {
    CHECK(!image.error().message.empty(), "refused without a reason");
    return;
  }
  const auto ram = *vm::Ram::make(32 << 20);
  const Result<vm::EntryState> entry =
      image->kind == vm::ImageKind::Multiboot
          ? vm::load_multiboot(*ram, *image, {.command_line = "a b", .modules = {{Bytes(5000), "m"}}})
          : vm::load_linux(*ram, *image, {.command_line = "a b", .initrd = Bytes(5000)});
  CHECK(entry.ok() || !entry.error().message.empty(), "refused without a reason");
}

void try_module(const Bytes& bytes) {
  const Result<vm::Module> module = vm::parse_module(bytes);
  CHECK(!module.ok() || module->bytes == bytes, "a module changed");
}

void try_text(const Bytes& bytes) {
  const std::string text(bytes.begin(), bytes.end());
  vm::DebianMirrors mirrors;
  vm::add_one_line_sources(text, mirrors);
  vm::add_deb822_sources(text, mirrors);
  // What is understood is written so that it is understood again.
  for (const vm::Stanza& stanza : vm::parse_control(text))
    CHECK(vm::parse_control(stanza.text()).size() == 1, "a stanza fell apart: {}", stanza.text());
}

}  // namespace

std::vector<std::vector<uint8_t>> seed_inputs() {
  const Bytes kernel = vm::make_vmlinux();
  const Bytes header = vm::make_multiboot_header(3);
  const std::string sources =
      "deb [arch=amd64] http://a.example/debian bookworm main\n\nTypes: deb\nURIs: http://b.example/debian\n"
      "Suites: sid\nComponents: main\n";
  return {kernel,
          vm::make_bzimage(zstd(kernel)),
          vm::make_bzimage(gzip(kernel)),
          vm::make_bzimage(lz4(kernel)),
          vm::make_bzimage({'B', 'Z', 'h'}),
          gzip(kernel),
          vm::make_elf32(0x100000, {{0x100000, 0x100000, header, 0x1000}}),
          vm::make_elf64(0xffffffff80100000, {{0xffffffff80100000, 0x100000, header, 0x1000}}),
          vm::make_multiboot_header(1 << 16, {0x200000, 0x200000, 0, 0x200100, 0x200000}),
          vm::make_module({"name=a", "depends=b,c", "softdep=pre: d", "alias=fs-a"}),
          {sources.begin(), sources.end()}};
}

}  // namespace slalom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes(data, data + size);
  slalom::try_image(bytes);
  slalom::try_module(bytes);
  slalom::try_text(bytes);
  return 0;
}
