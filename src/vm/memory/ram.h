// Ram: the guest's memory, with the bookkeeping that makes restores cheap.
//
// One host mapping holds the guest's memory. Page flags tell what a write to a page must do besides storing:
// note that the page differs from the last checkpoint, or drop what was decoded or translated from it. A page
// without such flags may be written through a host pointer (see vm/cpu/memory/tlb.h).
//
// Physical layout: RAM occupies [0, 3 GiB) and continues at 4 GiB. The space between belongs to devices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

using Physical = uint64_t;

inline constexpr uint64_t kPageSize = 4096;
inline constexpr unsigned kPageShift = 12;
inline constexpr Physical kLowRamEnd = 0xc0000000;      // start of the device hole
inline constexpr Physical kHighRamStart = 0x100000000;  // end of the device hole

class Ram {
 public:
  // `size`: 1 MiB to 8 GiB, a multiple of 1 MiB.
  static Result<std::unique_ptr<Ram>> make(uint64_t size);
  ~Ram();
  Ram(const Ram&) = delete;
  Ram& operator=(const Ram&) = delete;

  uint64_t size() const { return size_; }
  uint64_t pages() const { return size_ >> kPageShift; }
  uint64_t low_size() const { return size_ < kLowRamEnd ? size_ : kLowRamEnd; }

  // Pages are numbered without the hole. kNoPage: there is no RAM at the address.
  static constexpr uint64_t kNoPage = ~uint64_t{0};
  uint64_t page_of(Physical address) const {
    if (address < kLowRamEnd) return address < size_ ? address >> kPageShift : kNoPage;
    if (address < kHighRamStart) return kNoPage;
    const uint64_t offset = address - kHighRamStart + kLowRamEnd;
    return offset < size_ ? offset >> kPageShift : kNoPage;
  }
  Physical address_of(uint64_t page) const {
    const Physical offset = page << kPageShift;
    return offset < kLowRamEnd ? offset : offset - kLowRamEnd + kHighRamStart;
  }
  Physical address_behind(const uint8_t* host) const {  // `host` points into RAM
    const auto offset = static_cast<uint64_t>(host - data_);
    return offset < kLowRamEnd ? offset : offset - kLowRamEnd + kHighRamStart;
  }
  const uint8_t* page_data(uint64_t page) const { return data_ + (page << kPageShift); }
  // For writing: call touch(page) first.
  uint8_t* page_data(uint64_t page) { return data_ + (page << kPageShift); }

  // Any range, for loaders, hypercalls and debuggers. Returns false, without copying, if a part of it is not
  // RAM.
  bool read(Physical address, std::span<uint8_t> out) const;
  bool write(Physical address, std::span<const uint8_t> bytes);

  // Page flags.
  static constexpr uint8_t kDirty = 1;      // differs from the last checkpoint; listed in dirty()
  static constexpr uint8_t kCode = 2;       // blocks were decoded from it
  static constexpr uint8_t kPageTable = 4;  // translations were read from it
  static constexpr uint8_t kInTlb = 16;     // some TLB may allow writes to it
  static constexpr uint8_t kHashStale = 8;  // its hash is out of date
  uint8_t flags(uint64_t page) const { return flags_[page]; }
  void set_flag(uint64_t page, uint8_t flag) { flags_[page] |= flag; }
  void clear_flag(uint64_t page, uint8_t flag) { flags_[page] &= static_cast<uint8_t>(~flag); }

  // Call this before the first write to a page after a checkpoint or a hash.
  void touch(uint64_t page) {
    constexpr uint8_t both = kDirty | kHashStale;
    if ((flags_[page] & both) != both) note_write(page);
  }
  const std::vector<uint32_t>& dirty() const { return dirty_; }

  // A hash of all RAM. Reads only the pages that were written since the last call.
  uint64_t hash();

  // Checkpoints form a tree. Each stores the pages that differ from its parent's. kNone is the base, which is
  // all zeros until make_base().
  using Checkpoint = uint32_t;
  static constexpr Checkpoint kNone = ~Checkpoint{0};
  // Makes the current contents of RAM the base, which processes forked later share. Drops all checkpoints.
  void make_base();
  Checkpoint take();  // returns a child of the checkpoint that was last taken or restored
  // Appends the pages that were written to `changed`. The caller must drop what it decoded or translated from
  // them. All other pages keep their contents. No page is dirty afterwards.
  void restore(Checkpoint id, std::vector<uint32_t>& changed);
  void drop(Checkpoint id);  // its children, if any, take over its pages

 private:
  // Stores the pages of checkpoints in slots of one page. Slots are reference-counted, since the children of
  // a dropped checkpoint share its pages.
  class PagePool {
   public:
    uint32_t copy(const uint8_t* page);
    void share(uint32_t slot) { ++references_[slot]; }
    void release(uint32_t slot);
    const uint8_t* data(uint32_t slot) const { return chunks_[slot / kChunkPages][slot % kChunkPages].bytes; }
    void clear();

   private:
    static constexpr uint32_t kChunkPages = 256;
    struct Page {
      // Aligned like RAM; otherwise copying is several times slower.
      alignas(kPageSize) uint8_t bytes[kPageSize];
    };
    std::vector<std::unique_ptr<Page[]>> chunks_;
    std::vector<uint32_t> references_;
    std::vector<uint32_t> free_;
  };
  struct SavedPage {
    uint32_t page;
    uint32_t slot;
  };
  struct Delta {
    Checkpoint parent = kNone;
    uint32_t depth = 0;
    bool used = false;
    std::vector<SavedPage> pages;  // ascending
    std::vector<Checkpoint> children;
  };
  static constexpr uint8_t kUsed = 128;  // a page flag: was written once, so it may differ from zero
  static constexpr uint32_t kInBase = ~uint32_t{0};

  explicit Ram(uint64_t size) : size_(size) {}
  void note_write(uint64_t page);
  const uint8_t* saved_content(uint32_t page) const;  // in checkpoint current_
  uint32_t find_slot(Checkpoint id, uint32_t page) const;
  Delta& delta(Checkpoint id);
  void adopt(Checkpoint id, const Delta& dropped);
  void refresh_depths(Checkpoint id);

  uint64_t size_;
  uint8_t* data_ = nullptr;  // the guest's memory
  uint8_t* base_ = nullptr;  // written once, by make_base(); nullptr: all zeros
  std::vector<uint8_t> flags_;
  std::vector<uint32_t> dirty_;
  std::vector<uint32_t> stale_;
  std::vector<uint64_t> hashes_;  // by page: its contribution to hash_; 0 for a page of zeros
  uint64_t hash_ = 0;
  PagePool pool_;
  std::vector<Delta> checkpoints_;
  std::vector<Checkpoint> unused_;
  std::vector<uint32_t> slots_;  // by page: the slot of its content in current_, or kInBase
  Checkpoint current_ = kNone;
};

}  // namespace slalom::vm
