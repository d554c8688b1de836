// Blocks: the decoded code of the whole machine, by physical address.
//
// All blocks of a page are dropped together, when a decoded byte of the page is written or a restore changes
// its contents. A dropped block stays in memory until no CPU can be running it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "vm/cpu/op.h"
#include "vm/cpu/registers.h"
#include "vm/memory/arena.h"

namespace slalom::vm {

struct System;
struct Draft;

class Blocks {
 public:
  explicit Blocks(uint64_t pages);
  ~Blocks();

  Block* find(uint64_t ram_page, unsigned offset, CodeMode mode) const;
  // Decodes from `code`, the contents of the page. Returns nullptr if the first instruction reaches into the
  // next page.
  Block* decode(System& system, uint64_t ram_page, const uint8_t* code, unsigned offset, CodeMode mode);
  // Returns true if the instruction there is known to lie in two pages. Then there is nothing to decode in
  // the first.
  bool straddles(Physical address, CodeMode mode) const;
  // Returns a block with one instruction that lies in two pages. It is kept while its bytes are the same.
  Block* straddling(const System& system, Physical address, const uint8_t* bytes, unsigned available,
                    CodeMode mode);

  // Observed code must be decoded anew, because the observer or the places to stop at have changed.
  void drop_observed(System& system);
  void drop_observed_at(System& system, Physical address);

  // The same, in memory of the caller (as much as Cpu::scratch has), and without keeping the block.
  static Block* decode_one(const System& system, std::byte* memory, Physical address, const uint8_t* bytes,
                           unsigned available, CodeMode mode);

  bool overlaps(uint64_t ram_page, unsigned offset, unsigned size) const;
  void drop_page(System& system, uint64_t ram_page);
  // Frees dropped blocks. Call it only while no block runs. Returns false if there were none.
  bool free_dropped() {
    if (dropped_.empty()) return false;
    give_back_dropped();
    return true;
  }

 private:
  static constexpr unsigned kBuckets = 64, kChunk = 64;
  // Functions begin at multiples of 16.
  static unsigned bucket_of(unsigned offset) { return (offset ^ offset >> 6) % kBuckets; }
  struct Page {
    std::array<Block*, kBuckets> buckets{};
    uint64_t decoded = 0;  // one bit for each chunk of the page that contains decoded bytes
  };
  struct Straddler {
    Physical address = ~Physical{0};
    std::array<uint8_t, 15> bytes{};
    unsigned length = 0;
    Block* block = nullptr;
  };
  Block* make(Physical address, CodeMode mode, const Draft& draft);
  void give_back_dropped();
  void drop_observed_in(Page& page);

  Arena arena_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<Block*> dropped_;
  std::array<Straddler, 256> straddlers_;
};

// Decodes one instruction. `length` is 0 if it needs more than `available` bytes.
struct Decoded {
  enum class Flow : uint8_t { Other, Call, Return };
  Op op;
  unsigned length = 0;
  bool ends_block = false;
  bool stands_alone = false;
  // For hooks.
  Flow flow = Flow::Other;
  uint8_t modifies = 0;        // as in Block::modifies
  bool shares_memory = false;  // an operand lies in memory, not at an address made from the stack pointer
  unsigned stack_motion = 0;   // the most by which it moves the stack pointer
  // What it does to its first memory operand. `operand` holds the operand's address in the form of an op.
  OperandUse touch = OperandUse::Nothing;
  Op operand{.handler = nullptr, .base = kZero, .index = kZero};
};
// block_in_page: offset of the block in its page; offset: of the instruction in its block.
Decoded decode_instruction(const uint8_t* bytes, unsigned available, CodeMode mode, unsigned block_in_page,
                           unsigned offset);
// The op that ends a block without a jump at its end.
Op end_of_block(unsigned offset, unsigned number, bool within_page);

}  // namespace slalom::vm
