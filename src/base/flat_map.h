// FlatMap<V>: a hash map from 64-bit keys to small plain values, in one array (open addressing, linear
// probing).
//
// Made for observers' state: a copy is one memcpy, assignment and clear() keep the memory, the content is a
// function of the operations alone. Keys are never erased, clear() touches no slot. References are valid
// until the next insertion. Not for values that own anything, and the order of for_each means nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace slalom {

// Keys that differ only in their lowest kNear bits lie side by side: for those that come together.
template <typename V, unsigned kNear = 0>
class FlatMap {
  static_assert(std::is_trivially_copyable_v<V>);

 public:
  FlatMap() = default;
  FlatMap(const FlatMap&) = default;
  FlatMap& operator=(const FlatMap&) = default;
  FlatMap(FlatMap&& other) noexcept
      : slots_(std::move(other.slots_)),
        mask_(std::exchange(other.mask_, 0)),
        size_(std::exchange(other.size_, 0)),
        round_(other.round_) {
    other.slots_.clear();
  }
  FlatMap& operator=(FlatMap&& other) noexcept {
    slots_ = std::move(other.slots_);
    mask_ = std::exchange(other.mask_, 0);
    size_ = std::exchange(other.size_, 0);
    round_ = other.round_;
    other.slots_.clear();
    return *this;
  }

  // The value of `key`; a value-initialised one is inserted where there is none.
  V& operator[](uint64_t key) {
    if (2 * size_ >= mask_) [[unlikely]]
      grow();
    Slot& slot = slots_[probe(key)];
    if (slot.round != round_) {
      slot = {key, V{}, round_};
      ++size_;
    }
    return slot.value;
  }
  const V* find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[probe(key)];
    return slot.round == round_ ? &slot.value : nullptr;
  }
  V* find(uint64_t key) { return const_cast<V*>(std::as_const(*this).find(key)); }
  bool contains(uint64_t key) const { return find(key) != nullptr; }

  // Soon somebody will ask for it: several of these at once cost as much as one.
  void prefetch(uint64_t key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place(key)]);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void clear() {
    if (size_ == 0) return;
    if (slots_.size() > 16 * std::max(size_, kFirstSlots)) {
      // A table that once was much larger would make every later copy pay for it.
      slots_.clear();
      mask_ = 0;
    } else if (++round_ == 0) {
      std::fill(slots_.begin(), slots_.end(), Slot{});
      round_ = 1;
    }
    size_ = 0;
  }

  template <typename F>
  void for_each(F&& f) {
    for (Slot& slot : slots_)
      if (slot.round == round_) f(slot.key, slot.value);
  }
  template <typename F>
  void for_each(F&& f) const {
    for (const Slot& slot : slots_)
      if (slot.round == round_) f(slot.key, slot.value);
  }

 private:
  struct Slot {
    uint64_t key = 0;
    V value{};
    uint16_t round = 0;  // in which it was put there; another than round_: it is free
  };
  static constexpr size_t kFirstSlots = 16;

  // Where it is looked for first.
  size_t place(uint64_t key) const {
    // Both halves of the product: neighbouring keys spread by the high bits, aligned ones by the low.
    const auto product = static_cast<unsigned __int128>(key >> kNear) * 0x9e3779b97f4a7c15u;
    const uint64_t hash = static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
    return (hash << kNear | (key & ((uint64_t{1} << kNear) - 1))) & mask_;
  }

  // Where the key is, or the free slot where it belongs. There is always a free one.
  size_t probe(uint64_t key) const {
    size_t at = place(key);
    while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  void grow() {
    std::vector<Slot> old(std::max(kFirstSlots, 2 * slots_.size()));
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old)
      if (slot.round == round_) slots_[probe(slot.key)] = slot;
  }

  std::vector<Slot> slots_;  // a power of two of them, at most half used
  size_t mask_ = 0;          // their number less one; 0: there are none
  size_t size_ = 0;
  uint16_t round_ = 1;  // never 0; clear() begins another
};

}  // namespace slalom
