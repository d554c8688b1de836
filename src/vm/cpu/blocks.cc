#include "vm/cpu/blocks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "vm/cpu/cpu.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/observe/hooks.h"

namespace slalom::vm {

// A block in the making: its ops, with hooks if they are needed.
struct Draft {
  Op ops[Block::kRoom];
  uint8_t modifies[Block::kMaxOps];
  unsigned stored = 0, count = 0, bytes = 0, stack_motion = 0;
  bool ended = false;

  void add(const System& system, CodeMode mode, Physical block, Decoded& one) {
    if (mode.observed()) add_hooks(system, block, one);
    one.op.number = static_cast<uint8_t>(count);
    modifies[count++] = one.modifies;
    ops[stored++] = one.op;
    bytes += one.length;
    stack_motion += one.stack_motion;
    ended = one.ends_block;
  }
  void end(bool within_page) {
    if (!ended) ops[stored++] = end_of_block(bytes, count, within_page);
  }

 private:
  void add_hooks(const System& system, Physical block, const Decoded& one) {
    const TapFilter& filter = system.tap->filter;
    const auto hook = [&](Hook kind) { ops[stored++] = make_hook(kind, bytes, count); };
    if (count == 0 && (filter.edges || filter.calls || filter.events || !filter.own_stack)) hook(Hook::Block);
    if (stops_at(system.places, block + bytes, one)) ops[stored++] = make_place_hook(one, bytes, count);
    if (!filter.calls && !filter.events) return;
    if (one.flow == Decoded::Flow::Call) hook(Hook::Call);
    if (one.flow == Decoded::Flow::Return) hook(Hook::Return);
  }
  static bool stops_at(const Places& places, Physical address, const Decoded& one) {
    if (places.where == Places::Where::Locked && (one.modifies & Block::kLocked)) return true;
    if (places.where == Places::Where::Memory && one.shares_memory) return true;
    return places.listed.contains(address) ||
           places.page_offsets.contains(static_cast<uint16_t>(address % kPageSize));
  }
};

namespace {

// Without hooks there are as many ops as instructions, and perhaps one more.
size_t size_of(unsigned count, unsigned stored, bool observed) {
  return observed ? sizeof(Block) + stored * sizeof(Op) + sizeof(Block::Edge) + count
                  : sizeof(Block) + (count + 1) * sizeof(Op);
}
size_t size_of(const Block& block) {
  if (block.modifies == nullptr) return size_of(block.count, 0, false);
  return static_cast<size_t>(block.modifies + block.count - reinterpret_cast<const uint8_t*>(&block));
}

Block* make_block(Physical address, CodeMode mode, const Draft& draft, void* memory) {
  Block* block = new (memory) Block;
  block->address = address;
  block->mode = mode;
  block->count = static_cast<uint8_t>(draft.count);
  block->bytes = static_cast<uint16_t>(draft.bytes);
  std::memcpy(static_cast<void*>(block->ops), draft.ops, draft.stored * sizeof(Op));
  if (mode.observed()) {
    auto* edge = new (static_cast<void*>(block->ops + draft.stored)) Block::Edge;
    auto* modifies = reinterpret_cast<uint8_t*>(edge + 1);
    std::memcpy(modifies, draft.modifies, draft.count);
    block->modifies = modifies;
  }
  return block;
}

}  // namespace

Blocks::Blocks(uint64_t pages) : pages_(pages) {}

Blocks::~Blocks() = default;

void Blocks::give_back_dropped() {
  for (Block* block : dropped_) arena_.give_back(block, size_of(*block));
  dropped_.clear();
}

void System::free_dropped_blocks() {
  if (!blocks->free_dropped()) return;
  for (const auto& cpu : cpus) cpu->returns.fill(nullptr);
}

Block* Blocks::make(Physical address, CodeMode mode, const Draft& draft) {
  const size_t size = size_of(draft.count, draft.stored, mode.observed());
  return make_block(address, mode, draft, arena_.take(size));
}

Block* Blocks::find(uint64_t ram_page, unsigned offset, CodeMode mode) const {
  const Page* page = pages_[ram_page].get();
  if (page == nullptr) return nullptr;
  Block* block = page->buckets[bucket_of(offset)];
  while (block != nullptr && ((block->address & (kPageSize - 1)) != offset || block->mode != mode))
    block = block->next_in_page;
  return block;
}

Block* Blocks::decode(System& system, uint64_t ram_page, const uint8_t* code, unsigned offset,
                      CodeMode mode) {
  Draft draft;
  const Physical address = system.ram.address_of(ram_page) + offset;
  // The next block's hook checks the stack pointer, so end this block before the stack pointer can move far.
  while (draft.count < Block::kMaxOps && offset + draft.bytes < kPageSize && !draft.ended &&
         draft.stack_motion <= kStackMargin / 2) {
    const unsigned at = offset + draft.bytes;
    Decoded one =
        decode_instruction(code + at, static_cast<unsigned>(kPageSize - at), mode, offset, draft.bytes);
    if (one.length == 0) break;
    if (one.stands_alone && draft.count > 0) break;
    draft.add(system, mode, address, one);
  }
  if (draft.count == 0) return nullptr;
  const unsigned bytes = draft.bytes;
  draft.end(offset + bytes < kPageSize);
  Block* block = make(address, mode, draft);

  auto& page = pages_[ram_page];
  if (page == nullptr) page = std::make_unique<Page>();
  if (!(system.ram.flags(ram_page) & Ram::kCode)) {
    system.ram.set_flag(ram_page, Ram::kCode);
    protect_page(system, ram_page);
  }
  for (unsigned chunk = offset / kChunk; chunk <= (offset + bytes - 1) / kChunk; ++chunk)
    page->decoded |= uint64_t{1} << chunk;
  Block*& bucket = page->buckets[bucket_of(offset)];
  block->next_in_page = bucket;
  bucket = block;
  return block;
}

bool Blocks::straddles(Physical address, CodeMode mode) const {
  const Straddler& slot = straddlers_[(address >> 12) % straddlers_.size()];
  return slot.block != nullptr && slot.address == address && slot.block->mode == mode &&
         address % kPageSize + slot.block->bytes > kPageSize;
}

Block* Blocks::straddling(const System& system, Physical address, const uint8_t* bytes, unsigned available,
                          CodeMode mode) {
  Straddler& slot = straddlers_[(address >> 12) % straddlers_.size()];
  if (slot.block != nullptr && slot.address == address && slot.block->mode == mode &&
      slot.length == available && std::memcmp(slot.bytes.data(), bytes, available) == 0) {
    // Its successor lies in another page, which is dropped independently.
    slot.block->forget_links();
    return slot.block;
  }
  Decoded one = decode_instruction(bytes, available, mode, kPageSize, 0);
  if (one.length == 0) return nullptr;
  Draft draft;
  draft.add(system, mode, address, one);
  draft.end(false);
  if (slot.block != nullptr) dropped_.push_back(slot.block);
  slot.block = make(address, mode, draft);
  slot.address = address;
  // Keep all bytes: whether they are an instruction may depend on the last one.
  slot.length = available;
  std::copy_n(bytes, available, slot.bytes.begin());
  return slot.block;
}

Block* Blocks::decode_one(const System& system, std::byte* memory, Physical address, const uint8_t* bytes,
                          unsigned available, CodeMode mode) {
  Decoded one = decode_instruction(bytes, available, mode, address & (kPageSize - 1), 0);
  if (one.length == 0) return nullptr;
  Draft draft;
  draft.add(system, mode, address, one);
  draft.end(false);
  return make_block(address, mode, draft, memory);
}

bool Blocks::overlaps(uint64_t ram_page, unsigned offset, unsigned size) const {
  const Page* page = pages_[ram_page].get();
  if (page == nullptr || size == 0) return false;
  for (unsigned chunk = offset / kChunk; chunk <= (offset + size - 1) / kChunk; ++chunk)
    if (page->decoded & (uint64_t{1} << chunk)) return true;
  return false;
}

void Blocks::drop_observed_in(Page& page) {
  for (Block*& bucket : page.buckets) {
    Block** at = &bucket;
    while (*at != nullptr) {
      Block* block = *at;
      if (block->mode.observed()) {
        *at = block->next_in_page;
        dropped_.push_back(block);
      } else {
        at = &block->next_in_page;
      }
    }
  }
}

void Blocks::drop_observed(System& system) {
  for (const auto& page : pages_)
    if (page != nullptr) drop_observed_in(*page);
  for (Straddler& one : straddlers_)
    if (one.block != nullptr && one.block->mode.observed()) {
      dropped_.push_back(one.block);
      one = Straddler{};
    }
  system.forget_jumps();
}

void Blocks::drop_observed_at(System& system, Physical address) {
  const uint64_t ram_page = system.ram.page_of(address);
  if (ram_page != Ram::kNoPage && pages_[ram_page] != nullptr) drop_observed_in(*pages_[ram_page]);
  Straddler& one = straddlers_[(address >> 12) % straddlers_.size()];
  if (one.block != nullptr && one.block->mode.observed()) {
    dropped_.push_back(one.block);
    one = Straddler{};
  }
  system.forget_jumps();
}

void Blocks::drop_page(System& system, uint64_t ram_page) {
  if (pages_[ram_page] == nullptr) return;
  for (Block* block : pages_[ram_page]->buckets)
    for (; block != nullptr; block = block->next_in_page) dropped_.push_back(block);
  pages_[ram_page].reset();
  system.ram.clear_flag(ram_page, Ram::kCode);
  system.forget_jumps();
}

}  // namespace slalom::vm
