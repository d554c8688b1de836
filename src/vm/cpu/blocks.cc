#include "vm/cpu/blocks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "vm/cpu/cpu.h"
#include "vm/memory/mmu.h"

namespace slalom::vm {
namespace {

Block* make_block(Physical address, CodeMode mode, const Op* ops, unsigned count, unsigned stored,
                  unsigned bytes) {
  void* memory = std::malloc(sizeof(Block) + stored * sizeof(Op));
  CHECK(memory != nullptr, "out of memory for decoded code");
  Block* block = new (memory) Block;
  block->address = address;
  block->mode = mode;
  block->count = static_cast<uint8_t>(count);
  block->bytes = static_cast<uint16_t>(bytes);
  std::memcpy(static_cast<void*>(block->ops), ops, stored * sizeof(Op));
  return block;
}

}  // namespace

Blocks::Blocks(uint64_t pages) : pages_(pages) {}

Blocks::~Blocks() {
  for (const auto& page : pages_)
    if (page != nullptr)
      for (Block* block : page->buckets)
        while (block != nullptr) {
          Block* next = block->next_in_page;
          std::free(block);
          block = next;
        }
  for (Straddler& one : straddlers_) std::free(one.block);
  free_dead();
}

void Blocks::free_dead() {
  for (Block* block : dead_) std::free(block);
  dead_.clear();
}

Block* Blocks::find(uint64_t ram_page, unsigned offset, CodeMode mode) const {
  const Page* page = pages_[ram_page].get();
  if (page == nullptr) return nullptr;
  Block* block = page->buckets[offset % kBuckets];
  while (block != nullptr && ((block->address & (kPageSize - 1)) != offset || block->mode != mode))
    block = block->next_in_page;
  return block;
}

Block* Blocks::decode(System& system, uint64_t ram_page, const uint8_t* code, unsigned offset,
                      CodeMode mode) {
  Op ops[Block::kMaxOps + 1];
  unsigned count = 0, bytes = 0;
  bool ended = false;
  while (count < Block::kMaxOps && offset + bytes < kPageSize) {
    Decoded one = decode_instruction(code + offset + bytes, static_cast<unsigned>(kPageSize - offset - bytes),
                                     mode, offset, bytes);
    if (one.length == 0) break;
    if (one.stands_alone && count > 0) break;
    one.op.number = static_cast<uint8_t>(count);
    ops[count++] = one.op;
    bytes += one.length;
    if (one.ends_block) {
      ended = true;
      break;
    }
  }
  if (count == 0) return nullptr;
  if (!ended) ops[count] = end_of_block(bytes, count, offset + bytes < kPageSize);
  Block* block = make_block(system.ram.address_of(ram_page) + offset, mode, ops, count,
                            ended ? count : count + 1, bytes);

  auto& page = pages_[ram_page];
  if (page == nullptr) page = std::make_unique<Page>();
  if (!(system.ram.flags(ram_page) & Ram::kCode)) {
    system.ram.set_flag(ram_page, Ram::kCode);
    protect_page(system, ram_page);
  }
  for (unsigned chunk = offset / kChunk; chunk <= (offset + bytes - 1) / kChunk; ++chunk)
    page->decoded |= uint64_t{1} << chunk;
  block->next_in_page = page->buckets[offset % kBuckets];
  page->buckets[offset % kBuckets] = block;
  return block;
}

Block* Blocks::straddling(Physical address, const uint8_t* bytes, unsigned available, CodeMode mode) {
  Straddler& slot = straddlers_[(address >> 12) % straddlers_.size()];
  if (slot.block != nullptr && slot.address == address && slot.block->mode == mode &&
      slot.length == available && std::memcmp(slot.bytes.data(), bytes, available) == 0) {
    // What follows it lies in another page, which comes and goes by itself.
    slot.block->taken = slot.block->fallthrough = nullptr;
    return slot.block;
  }
  const Decoded one = decode_instruction(bytes, available, mode, kPageSize, 0);
  if (one.length == 0) return nullptr;
  Op ops[2] = {one.op, end_of_block(one.length, 1, false)};
  if (slot.block != nullptr) dead_.push_back(slot.block);
  slot.block = make_block(address, mode, ops, 1, one.ends_block ? 1 : 2, one.length);
  slot.address = address;
  // All of them: that bytes are no instruction may depend on the last.
  slot.length = available;
  std::copy_n(bytes, available, slot.bytes.begin());
  return slot.block;
}

bool Blocks::overlaps(uint64_t ram_page, unsigned offset, unsigned size) const {
  const Page* page = pages_[ram_page].get();
  if (page == nullptr || size == 0) return false;
  for (unsigned chunk = offset / kChunk; chunk <= (offset + size - 1) / kChunk; ++chunk)
    if (page->decoded & (uint64_t{1} << chunk)) return true;
  return false;
}

void Blocks::drop_page(System& system, uint64_t ram_page) {
  if (pages_[ram_page] == nullptr) return;
  for (Block* block : pages_[ram_page]->buckets)
    for (; block != nullptr; block = block->next_in_page) dead_.push_back(block);
  pages_[ram_page].reset();
  system.ram.clear_flag(ram_page, Ram::kCode);
  system.forget_jumps();
}

}  // namespace slalom::vm
