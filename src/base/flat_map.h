// FlatMap<V>: a hash map from 64-bit keys to small plain values, in one array (open addressing, linear
// probing).
//
// Made for the state of observers. A copy is one memcpy; assignment and clear() keep the memory; the content
// depends on the operations alone. Keys cannot be erased. clear() touches no slot. References are valid until
// the next insertion. Not for values that own anything. The order of for_each has no meaning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace slalom {

// Keys that differ only in their lowest kNear bits lie side by side, for keys that are used together.
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

  // Returns the value of `key`. Inserts a value-initialised one if there is none.
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

  // Announces a lookup of the key. Several prefetches at once cost as much as one.
  void prefetch(uint64_t key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[place(key)]);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void clear() {
    if (size_ == 0) return;
    if (slots_.size() > 16 * std::max(size_, kFirstSlots)) {
      // Every later copy would pay for a table that was once much larger.
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
    uint16_t round = 0;  // in which it was filled; the slot is free if this is not round_
  };
  static constexpr size_t kFirstSlots = 16;

  // Returns the slot to examine first.
  size_t place(uint64_t key) const {
    // Uses both halves of the product. Neighbouring keys spread by the high bits, aligned keys by the low
    // bits.
    const auto product = static_cast<unsigned __int128>(key >> kNear) * 0x9e3779b97f4a7c15u;
    const uint64_t hash = static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
    return (hash << kNear | (key & ((uint64_t{1} << kNear) - 1))) & mask_;
  }

  // Returns the slot of the key, or the free slot where it belongs. There is always a free slot.
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

  std::vector<Slot> slots_;  // a power of two of slots, at most half used
  size_t mask_ = 0;          // number of slots minus one; 0 if there are none
  size_t size_ = 0;
  uint16_t round_ = 1;  // never 0; clear() starts another round
};

}  // namespace slalom
