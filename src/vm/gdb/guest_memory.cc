#include "vm/gdb/guest_memory.h"

#include <algorithm>

#include "vm/cpu/blocks.h"
#include "vm/memory/mmu.h"

namespace slalom::vm {
namespace {

struct Piece {
  Physical physical;
  uint64_t size;
};

// The part of a range that lies in its first page.
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

}  // namespace

std::vector<uint8_t> read_memory(const Cpu& cpu, uint64_t address, uint64_t size) {
  std::vector<uint8_t> bytes;
  Piece piece;
  while (bytes.size() < size && first_piece(cpu, address + bytes.size(), size - bytes.size(), piece)) {
    const size_t done = bytes.size();
    bytes.resize(done + piece.size);
    if (!cpu.system.ram.read(piece.physical, std::span(bytes).subspan(done))) {
      bytes.resize(done);
      break;
    }
  }
  return bytes;
}

bool write_memory(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes) {
  std::vector<Piece> pieces;
  for (uint64_t done = 0; done < bytes.size(); done += pieces.back().size) {
    Piece piece;
    if (!first_piece(cpu, address + done, bytes.size() - done, piece)) return false;
    pieces.push_back(piece);
  }
  Ram& ram = cpu.system.ram;
  for (const Piece& piece : pieces) {
    if (!ram.write(piece.physical, bytes.first(piece.size))) return false;
    bytes = bytes.subspan(piece.size);
    cpu.system.blocks->drop_page(cpu.system, ram.page_of(piece.physical));
  }
  forget_all(cpu.system);
  return true;
}

}  // namespace slalom::vm
