// Blocks: the decoded code of the whole machine, by physical address.
//
// Blocks of a page live and die together: when a decoded byte of it is written, or its contents are restored
// to something else. What is dropped stays in memory until nobody can be running it.
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
  // Decodes from `code`, the contents of the page. Null: the first instruction reaches into the next page.
  Block* decode(System& system, uint64_t ram_page, const uint8_t* code, unsigned offset, CodeMode mode);
  // Is it known that the instruction there lies in two pages? Then there is nothing to decode in the first.
  bool straddles(Physical address, CodeMode mode) const;
  // One instruction that lies in two pages. Kept as long as its bytes are the same.
  Block* straddling(const System& system, Physical address, const uint8_t* bytes, unsigned available,
                    CodeMode mode);

  // Observed code is decoded anew: who observes, or the places to stop at, have changed.
  void drop_observed(System& system);
  void drop_observed_at(System& system, Physical address);

  // The same in memory of the caller's (as much as Cpu::scratch has), remembering nothing.
  static Block* decode_one(const System& system, std::byte* memory, Physical address, const uint8_t* bytes,
                           unsigned available, CodeMode mode);

  bool overlaps(uint64_t ram_page, unsigned offset, unsigned size) const;
  void drop_page(System& system, uint64_t ram_page);
  // When no block runs: frees what was dropped. False: that was nothing.
  bool bury() {
    if (dead_.empty()) return false;
    free_dead();
    return true;
  }

 private:
  static constexpr unsigned kBuckets = 64, kChunk = 64;
  // Functions begin at multiples of 16.
  static unsigned bucket_of(unsigned offset) { return (offset ^ offset >> 6) % kBuckets; }
  struct Page {
    std::array<Block*, kBuckets> buckets{};
    uint64_t decoded = 0;  // a bit for each chunk of the page that holds decoded bytes
  };
  struct Straddler {
    Physical address = ~Physical{0};
    std::array<uint8_t, 15> bytes{};
    unsigned length = 0;
    Block* block = nullptr;
  };
  Block* make(Physical address, CodeMode mode, const Draft& draft);
  void free_dead();
  void drop_observed_in(Page& page);

  Arena arena_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<Block*> dead_;
  std::array<Straddler, 256> straddlers_;
};

// Decodes one instruction; `length` 0: more than `available` bytes are needed.
struct Decoded {
  enum class Flow : uint8_t { Other, Call, Return };
  Op op;
  unsigned length = 0;
  bool ends_block = false;
  bool stands_alone = false;
  // For hooks.
  Flow flow = Flow::Other;
  uint8_t modifies = 0;        // as in Block::modifies
  bool shares_memory = false;  // an operand lies in memory, and the stack pointer does not say where
  unsigned stack_motion = 0;   // by how much it moves the stack pointer, at most
  // What it does to its first operand in memory, whose address `operand` has, as ops have it.
  Touch touch = Touch::Nothing;
  Op operand{.handler = nullptr, .base = kZero, .index = kZero};
};
// block_in_page: where in its page the block starts; offset: of the instruction within the block.
Decoded decode_instruction(const uint8_t* bytes, unsigned available, CodeMode mode, unsigned block_in_page,
                           unsigned offset);
// The op that ends a block which no jump ends.
Op end_of_block(unsigned offset, unsigned number, bool within_page);

}  // namespace slalom::vm
