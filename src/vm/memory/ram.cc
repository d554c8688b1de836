#include "vm/memory/ram.h"

#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/hash.h"

namespace slalom::vm {

namespace {

constexpr uint64_t kMebibyte = 1 << 20;
alignas(kPageSize) constexpr uint8_t kZeroPage[kPageSize] = {};

// Size of the inaccessible areas on both sides of guest memory. As large as a huge page, so that guest memory
// stays aligned to huge pages.
constexpr uint64_t kGuard = 2 * kMebibyte;

uint8_t* map_zeros(uint64_t size, int advice) {
  void* all = mmap(nullptr, size + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  uint8_t* data = static_cast<uint8_t*>(all) + kGuard;
  if (mprotect(data, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(all, size + 2 * kGuard);
    return nullptr;
  }
  madvise(data, size, advice);
  return data;
}

void unmap(uint8_t* data, uint64_t size) {
  if (data != nullptr) munmap(data - kGuard, size + 2 * kGuard);
}

bool is_zero(const uint8_t* page) {
  return std::memcmp(page, kZeroPage, kPageSize) == 0;
}

}  // namespace

uint32_t Ram::PagePool::copy(const uint8_t* page) {
  if (free_.empty()) {
    const uint32_t first = static_cast<uint32_t>(references_.size());
    CHECK(first < kInBase - kChunkPages, "too many pages in checkpoints");
    chunks_.push_back(std::make_unique_for_overwrite<Page[]>(kChunkPages));
    references_.resize(first + kChunkPages, 0);
    // Slots are taken from the back, so that neighbours in a checkpoint are neighbours in memory.
    for (uint32_t i = kChunkPages; i-- > 0;) free_.push_back(first + i);
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  references_[slot] = 1;
  std::memcpy(chunks_[slot / kChunkPages][slot % kChunkPages].bytes, page, kPageSize);
  return slot;
}

void Ram::PagePool::release(uint32_t slot) {
  if (--references_[slot] == 0) free_.push_back(slot);
}

void Ram::PagePool::clear() {
  chunks_.clear();
  references_.clear();
  free_.clear();
}

Result<std::unique_ptr<Ram>> Ram::make(uint64_t size) {
  if (size < kMebibyte || size > 8192 * kMebibyte || size % kMebibyte != 0)
    return error("guest memory of {} bytes: it must be 1 MiB up to 8 GiB, in whole MiB", size);
  std::unique_ptr<Ram> ram(new Ram(size));
  // Use huge pages if the host has them, because guest memory is accessed at random.
  ram->data_ = map_zeros(size, MADV_HUGEPAGE);
  if (ram->data_ == nullptr)
    return error("cannot reserve {} MiB for the guest: {}; give it less memory", size / kMebibyte,
                 std::strerror(errno));
  ram->flags_.assign(ram->pages(), 0);
  ram->hashes_.assign(ram->pages(), 0);
  ram->slots_.assign(ram->pages(), kInBase);
  return ram;
}

Ram::~Ram() {
  unmap(data_, size_);
  unmap(base_, size_);
}

bool Ram::read(Physical address, std::span<uint8_t> out) const {
  if (out.size() > ~address) return false;
  for (size_t done = 0; done < out.size();) {
    const uint64_t page = page_of(address + done);
    if (page == kNoPage) return false;
    const uint64_t offset = (address + done) % kPageSize;
    done += kPageSize - offset;
  }
  for (size_t done = 0; done < out.size();) {
    const uint64_t offset = (address + done) % kPageSize;
    const size_t part = std::min<size_t>(out.size() - done, kPageSize - offset);
    std::memcpy(out.data() + done, page_data(page_of(address + done)) + offset, part);
    done += part;
  }
  return true;
}

bool Ram::write(Physical address, std::span<const uint8_t> bytes) {
  if (bytes.size() > ~address) return false;
  for (size_t done = 0; done < bytes.size();) {
    if (page_of(address + done) == kNoPage) return false;
    done += kPageSize - (address + done) % kPageSize;
  }
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t offset = (address + done) % kPageSize;
    const size_t part = std::min<size_t>(bytes.size() - done, kPageSize - offset);
    const uint64_t page = page_of(address + done);
    touch(page);
    std::memcpy(page_data(page) + offset, bytes.data() + done, part);
    done += part;
  }
  return true;
}

void Ram::note_write(uint64_t page) {
  if ((flags_[page] & kDirty) == 0) dirty_.push_back(static_cast<uint32_t>(page));
  if ((flags_[page] & kHashStale) == 0) stale_.push_back(static_cast<uint32_t>(page));
  flags_[page] |= kDirty | kHashStale | kUsed;
}

uint64_t Ram::hash() {
  static const uint64_t zero_hash = XXH3_64bits(kZeroPage, kPageSize);
  for (const uint32_t page : stale_) {
    const uint64_t content = XXH3_64bits(page_data(page), kPageSize);
    const uint64_t part = content == zero_hash ? 0 : combine(page, content);
    hash_ += part - hashes_[page];
    hashes_[page] = part;
    flags_[page] &= static_cast<uint8_t>(~kHashStale);
  }
  stale_.clear();
  return combine(size_, hash_);
}

void Ram::make_base() {
  // A separate mapping, never written again: processes forked later share it, and those forked earlier keep
  // theirs. It uses small pages, because only pages that are not zero are ever touched. Clearing the rest of
  // huge pages would take longer than everything else here.
  uint8_t* base = map_zeros(size_, MADV_NOHUGEPAGE);
  if (base == nullptr) throw std::bad_alloc();
  for (uint64_t page = 0; page < pages(); ++page)
    if (flags_[page] & kUsed)
      if (!is_zero(page_data(page))) std::memcpy(base + (page << kPageShift), page_data(page), kPageSize);
  unmap(base_, size_);
  base_ = base;

  for (const uint32_t page : dirty_) flags_[page] &= static_cast<uint8_t>(~kDirty);
  dirty_.clear();
  checkpoints_.clear();
  unused_.clear();
  pool_.clear();
  slots_.assign(pages(), kInBase);
  current_ = kNone;
}

Ram::Delta& Ram::delta(Checkpoint id) {
  CHECK(id < checkpoints_.size() && checkpoints_[id].used, "checkpoint {} does not exist", id);
  return checkpoints_[id];
}

Ram::Checkpoint Ram::take() {
  std::sort(dirty_.begin(), dirty_.end());
  Delta taken;
  taken.used = true;
  taken.parent = current_;
  taken.depth = current_ == kNone ? 1 : delta(current_).depth + 1;
  taken.pages.reserve(dirty_.size());
  for (const uint32_t page : dirty_) {
    const uint32_t slot = pool_.copy(page_data(page));
    taken.pages.push_back({page, slot});
    slots_[page] = slot;
    flags_[page] &= static_cast<uint8_t>(~kDirty);
  }
  dirty_.clear();

  Checkpoint id = static_cast<Checkpoint>(checkpoints_.size());
  if (unused_.empty()) {
    checkpoints_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  checkpoints_[id] = std::move(taken);
  if (current_ != kNone) delta(current_).children.push_back(id);
  return current_ = id;
}

uint32_t Ram::find_slot(Checkpoint id, uint32_t page) const {
  for (; id != kNone; id = checkpoints_[id].parent) {
    const std::vector<SavedPage>& pages = checkpoints_[id].pages;
    const auto found =
        std::lower_bound(pages.begin(), pages.end(), page,
                         [](const SavedPage& saved, uint32_t wanted) { return saved.page < wanted; });
    if (found != pages.end() && found->page == page) return found->slot;
  }
  return kInBase;
}

const uint8_t* Ram::saved_content(uint32_t page) const {
  if (slots_[page] != kInBase) return pool_.data(slots_[page]);
  return base_ ? base_ + (static_cast<uint64_t>(page) << kPageShift) : kZeroPage;
}

void Ram::restore(Checkpoint id, std::vector<uint32_t>& changed) {
  if (id != kNone) delta(id);
  // Pages that may differ: those written since current_, and those of any checkpoint between current_ and id.
  // The dirty flag marks pages that are already in the list.
  const auto differs = [&](const Delta& step) {
    for (const SavedPage& saved : step.pages) {
      if (flags_[saved.page] & kDirty) continue;
      flags_[saved.page] |= kDirty;
      dirty_.push_back(saved.page);
    }
  };
  const auto depth = [&](Checkpoint checkpoint) { return checkpoint == kNone ? 0 : delta(checkpoint).depth; };
  Checkpoint left = current_;
  Checkpoint right = id;
  while (left != right) {
    Checkpoint& deeper = depth(left) >= depth(right) ? left : right;
    differs(checkpoints_[deeper]);
    deeper = checkpoints_[deeper].parent;
  }
  if (id != current_)
    for (const uint32_t page : dirty_) slots_[page] = find_slot(id, page);
  for (const uint32_t page : dirty_) {
    std::memcpy(page_data(page), saved_content(page), kPageSize);
    if ((flags_[page] & kHashStale) == 0) stale_.push_back(page);
    flags_[page] = static_cast<uint8_t>((flags_[page] & ~kDirty) | kHashStale);
  }
  changed.insert(changed.end(), dirty_.begin(), dirty_.end());
  dirty_.clear();
  current_ = id;
}

// Merges the pages of a dropped parent into checkpoint `id`. The checkpoint's own pages take precedence.
void Ram::adopt(Checkpoint id, const Delta& dropped) {
  Delta& child = delta(id);
  std::vector<SavedPage> merged;
  merged.reserve(child.pages.size() + dropped.pages.size());
  auto own = child.pages.begin();
  for (const SavedPage& inherited : dropped.pages) {
    while (own != child.pages.end() && own->page < inherited.page) merged.push_back(*own++);
    if (own != child.pages.end() && own->page == inherited.page) continue;
    pool_.share(inherited.slot);
    merged.push_back(inherited);
  }
  merged.insert(merged.end(), own, child.pages.end());
  child.pages = std::move(merged);
  child.parent = dropped.parent;
  if (dropped.parent != kNone) delta(dropped.parent).children.push_back(id);
  refresh_depths(id);
}

void Ram::refresh_depths(Checkpoint id) {
  std::vector<Checkpoint> todo{id};
  while (!todo.empty()) {
    Delta& next = delta(todo.back());
    todo.pop_back();
    --next.depth;
    todo.insert(todo.end(), next.children.begin(), next.children.end());
  }
}

void Ram::drop(Checkpoint id) {
  const Delta dropped = std::move(delta(id));
  checkpoints_[id] = Delta{};
  unused_.push_back(id);
  if (dropped.parent != kNone) std::erase(delta(dropped.parent).children, id);
  for (const Checkpoint child : dropped.children) adopt(child, dropped);
  if (current_ == id) {
    // RAM does not change. It now differs from the parent by these pages, too.
    current_ = dropped.parent;
    for (const SavedPage& saved : dropped.pages) {
      slots_[saved.page] = find_slot(current_, saved.page);
      if (flags_[saved.page] & kDirty) continue;
      flags_[saved.page] |= kDirty;
      dirty_.push_back(saved.page);
    }
  }
  for (const SavedPage& saved : dropped.pages) pool_.release(saved.slot);
}

}  // namespace slalom::vm
