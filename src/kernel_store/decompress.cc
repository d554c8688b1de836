#include "kernel_store/decompress.h"

#include <lz4.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "base/little_endian.h"

namespace slalom::vm {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kStep = size_t{1} << 20;  // the least by which the output grows
constexpr uint64_t kMaxDecoderMemory = uint64_t{256} << 20;
constexpr int kMaxWindowLog = 27;  // as `zstd --ultra -22` uses, the strongest setting for kernels
constexpr size_t kLz4Block = size_t{8} << 20;     // of the legacy format
constexpr size_t kZlibMaximum = size_t{1} << 30;  // its counters have 32 bits

Error damaged(Compression compression) {
  return error("its {} data is damaged; fetch or build it again", name_of(compression));
}

Error too_big(uint64_t limit) {
  return error("unpacked, it has more than {} bytes, which no kernel has; is it one?", limit);
}

// Returns room for the next piece of output; empty if the limit is reached.
std::span<uint8_t> grow(Bytes& output, uint64_t limit) {
  const size_t filled = output.size();
  output.resize(std::min<uint64_t>(limit, filled + std::max(kStep, filled / 2)));
  return std::span(output).subspan(filled);
}

Result<Bytes> unpack_gzip(std::span<const uint8_t> bytes, uint64_t limit) {
  if (bytes.size() > kZlibMaximum) return too_big(limit);
  z_stream stream = {};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return damaged(Compression::Gzip);
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> owner(&stream, &inflateEnd);
  stream.next_in = const_cast<Bytef*>(bytes.data());  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  Bytes output;
  for (;;) {
    const std::span<uint8_t> room = grow(output, limit);
    if (room.empty()) return too_big(limit);
    stream.next_out = room.data();
    stream.avail_out = static_cast<uInt>(std::min(room.size(), kZlibMaximum));
    const int code = inflate(&stream, Z_NO_FLUSH);
    output.resize(static_cast<size_t>(stream.next_out - output.data()));
    if (code == Z_STREAM_END) return output;
    if (code != Z_OK || stream.avail_out != 0) return damaged(Compression::Gzip);
  }
}

Result<Bytes> unpack_lzma(std::span<const uint8_t> bytes, uint64_t limit, Compression compression) {
  lzma_stream stream = LZMA_STREAM_INIT;
  const lzma_ret started = compression == Compression::Xz ? lzma_stream_decoder(&stream, kMaxDecoderMemory, 0)
                                                          : lzma_alone_decoder(&stream, kMaxDecoderMemory);
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, &lzma_end);
  if (started != LZMA_OK) return damaged(compression);
  stream.next_in = bytes.data();
  stream.avail_in = bytes.size();
  Bytes output;
  for (;;) {
    const std::span<uint8_t> room = grow(output, limit);
    if (room.empty()) return too_big(limit);
    stream.next_out = room.data();
    stream.avail_out = room.size();
    const lzma_ret code = lzma_code(&stream, LZMA_RUN);
    output.resize(static_cast<size_t>(stream.next_out - output.data()));
    if (code == LZMA_STREAM_END) return output;
    if (code != LZMA_OK || stream.avail_out != 0) return damaged(compression);
  }
}

Result<Bytes> unpack_zstd(std::span<const uint8_t> bytes, uint64_t limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (!context ||
      ZSTD_isError(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kMaxWindowLog)) != 0)
    return error("zstd cannot be used; is there memory left?");
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  Bytes output;
  for (;;) {
    const size_t filled = output.size();
    const std::span<uint8_t> room = grow(output, limit);
    if (room.empty()) return too_big(limit);
    ZSTD_outBuffer to = {room.data(), room.size(), 0};
    const size_t code = ZSTD_decompressStream(context.get(), &to, &input);
    output.resize(filled + to.pos);
    if (ZSTD_isError(code) != 0) return damaged(Compression::Zstd);
    if (code == 0) return output;
    if (to.pos < to.size && input.pos == input.size) return damaged(Compression::Zstd);
  }
}

// The data is a sequence of blocks: a size, and that many bytes. Each has at most 8 MiB of output. A size
// that exceeds the input is the length that a kernel build appends. It ends the data, if there was a block
// before.
Result<Bytes> unpack_lz4(std::span<const uint8_t> bytes, uint64_t limit) {
  Bytes output;
  uint64_t position = 4;
  while (position < bytes.size()) {
    const std::optional<uint32_t> size = get_le<uint32_t>(bytes, position);
    if (size && position + 4 == bytes.size() && *size == output.size()) break;
    const std::optional<std::span<const uint8_t>> block =
        size ? part_of(bytes, position + 4, *size) : std::nullopt;
    if (!block || block->empty() || block->size() > LZ4_COMPRESSBOUND(kLz4Block))
      return damaged(Compression::Lz4Legacy);
    if (output.size() >= limit) return too_big(limit);
    const size_t filled = output.size();
    output.resize(filled + kLz4Block);
    const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(block->data()),
                                        reinterpret_cast<char*>(output.data() + filled),
                                        static_cast<int>(block->size()), static_cast<int>(kLz4Block));
    if (got < 0) return damaged(Compression::Lz4Legacy);
    output.resize(filled + static_cast<size_t>(got));
    if (output.size() > limit) return too_big(limit);
    position += 4 + *size;
  }
  if (position == 4) return damaged(Compression::Lz4Legacy);
  return output;
}

bool starts_with(std::span<const uint8_t> bytes, std::initializer_list<uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::None:
      return "uncompressed";
    case Compression::Gzip:
      return "gzip";
    case Compression::Xz:
      return "xz";
    case Compression::Lzma:
      return "lzma";
    case Compression::Zstd:
      return "zstd";
    case Compression::Lz4Legacy:
      return "lz4";
    case Compression::Bzip2:
      return "bzip2";
    case Compression::Lzo:
      return "lzo";
  }
  CHECK(false, "compression {}", static_cast<int>(compression));
}

Compression compression_of(std::span<const uint8_t> bytes) {
  if (starts_with(bytes, {0x1f, 0x8b})) return Compression::Gzip;
  if (starts_with(bytes, {0xfd, '7', 'z', 'X', 'Z', 0})) return Compression::Xz;
  if (starts_with(bytes, {0x5d, 0, 0})) return Compression::Lzma;
  if (starts_with(bytes, {0x28, 0xb5, 0x2f, 0xfd})) return Compression::Zstd;
  if (starts_with(bytes, {0x02, 0x21, 0x4c, 0x18})) return Compression::Lz4Legacy;
  if (starts_with(bytes, {'B', 'Z', 'h'})) return Compression::Bzip2;
  if (starts_with(bytes, {0x89, 'L', 'Z', 'O'})) return Compression::Lzo;
  return Compression::None;
}

bool can_unpack(Compression compression) {
  return compression != Compression::None && compression != Compression::Bzip2 &&
         compression != Compression::Lzo;
}

Result<Bytes> unpack(std::span<const uint8_t> bytes, uint64_t limit) {
  const Compression compression = compression_of(bytes);
  switch (compression) {
    case Compression::Gzip:
      return unpack_gzip(bytes, limit);
    case Compression::Xz:
    case Compression::Lzma:
      return unpack_lzma(bytes, limit, compression);
    case Compression::Zstd:
      return unpack_zstd(bytes, limit);
    case Compression::Lz4Legacy:
      return unpack_lz4(bytes, limit);
    case Compression::None:
      return error("it is not compressed with anything that slalom knows");
    case Compression::Bzip2:
    case Compression::Lzo:
      return error("slalom does not unpack {}; give it unpacked", name_of(compression));
  }
  CHECK(false, "compression {}", static_cast<int>(compression));
}

}  // namespace slalom::vm
