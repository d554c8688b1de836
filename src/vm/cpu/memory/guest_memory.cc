#include "vm/cpu/memory/guest_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/little_endian.h"
#include "vm/cpu/blocks.h"
#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {
namespace {

struct Piece {
  Physical physical;
  uint64_t size;
};

// Returns the part of a range that lies in its first page.
bool first_piece(const Cpu& cpu, uint64_t address, uint64_t size, Piece& piece) {
  if (cpu.long_mode()) {
    const uint64_t top = address >> 47;
    if (top != 0 && top != 0x1ffff) return false;
  } else if (address > 0xffffffff) {
    return false;
  }
  piece.size = std::min(size, kPageSize - address % kPageSize);
  if (!translate_quietly(cpu, address, piece.physical)) return false;
  return cpu.system.ram.page_of(piece.physical) != Ram::kNoPage && !cpu.system.bus.is_device(piece.physical);
}

// Returns the host address by the CPU's TLB, which usually has the page and never contradicts the page
// tables; nullptr if it does not have the page.
inline const void* find_in_tlb(const Cpu& cpu, uint64_t address, uint64_t size) {
  const TlbEntry& entry = cpu.tlbs[address >> 63 != 0 ? 0 : 1].entries[Tlb::index(address)];
  const bool is_there = entry.read == (address & kPageMask) && size <= kPageSize - address % kPageSize;
  return is_there ? reinterpret_cast<const void*>(address + entry.addend) : nullptr;
}

}  // namespace

size_t read_memory(const Cpu& cpu, uint64_t address, std::span<uint8_t> out) {
  if (const void* known = find_in_tlb(cpu, address, out.size())) {
    std::memcpy(out.data(), known, out.size());
    return out.size();
  }
  size_t done = 0;
  Piece piece;
  while (done < out.size() && first_piece(cpu, address + done, out.size() - done, piece)) {
    if (!cpu.system.ram.read(piece.physical, out.subspan(done, piece.size))) break;
    done += piece.size;
  }
  return done;
}

std::optional<uint64_t> read_word(const Cpu& cpu, uint64_t address) {
  if (const void* known = find_in_tlb(cpu, address, 8)) {
    uint64_t word;
    std::memcpy(&word, known, 8);
    return word;
  }
  uint8_t bytes[8];
  if (!read_all(cpu, address, bytes)) return std::nullopt;
  return get_le<uint64_t>(bytes, 0);
}

std::string read_string(const Cpu& cpu, uint64_t address, size_t most) {
  std::string text;
  while (text.size() < most) {
    uint8_t bytes[256];
    const size_t size =
        read_memory(cpu, address, std::span(bytes).first(std::min(most - text.size(), sizeof(bytes))));
    const uint8_t* const end = std::find(bytes, bytes + size, uint8_t{0});
    text.append(static_cast<const uint8_t*>(bytes), end);
    if (size == 0 || end != bytes + size) break;
    address += size;
  }
  return text;
}

bool write_memory(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes) {
  std::vector<Piece> pieces;
  for (uint64_t done = 0; done < bytes.size(); done += pieces.back().size) {
    Piece piece;
    if (!first_piece(cpu, address + done, bytes.size() - done, piece)) return false;
    pieces.push_back(piece);
  }
  Ram& ram = cpu.system.ram;
  Blocks& blocks = *cpu.system.blocks;
  for (const Piece& piece : pieces) {
    if (!ram.write(piece.physical, bytes.first(piece.size))) return false;
    bytes = bytes.subspan(piece.size);
    const uint64_t page = ram.page_of(piece.physical);
    if (blocks.overlaps(page, piece.physical & ~kPageMask, static_cast<unsigned>(piece.size)))
      blocks.drop_page(cpu.system, page);
    if (ram.flags(page) & Ram::kPageTable) forget_all(cpu.system);
  }
  return true;
}

}  // namespace slalom::vm
