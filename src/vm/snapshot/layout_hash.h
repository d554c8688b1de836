// layout_hash<State>(): a number that changes with the list of a State's fields: their order, sizes and
// kinds.
//
// Files that hold a State contain it. It distinguishes files of a machine with other fields from damaged
// files.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "base/hash.h"

namespace slalom::vm {

class LayoutHasher {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (visit(fields), ...);
  }
  uint64_t hash() const { return hash_; }

 private:
  enum Shape : uint64_t { kNumber, kState, kArray, kVector, kDeque, kText };

  void note(Shape shape, uint64_t size) { hash_ = combine(hash_, shape, size); }
  template <class T>
  void visit(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      note(kNumber, sizeof(T) * 2 + std::is_signed_v<T>);
    } else {
      note(kState, 0);
      T::fields(value, *this);
    }
  }
  template <class T, size_t n>
  void visit(const std::array<T, n>& values) {
    note(kArray, n);
    visit(values[0]);
  }
  template <class T>
  void visit(const std::vector<T>&) {
    note(kVector, 0);
    visit(T{});
  }
  template <class T>
  void visit(const std::deque<T>&) {
    note(kDeque, 0);
    visit(T{});
  }
  void visit(const std::string&) { note(kText, 0); }

  uint64_t hash_ = 0;
};

template <class State>
uint64_t layout_hash() {
  LayoutHasher hasher;
  hasher(State{});
  return hasher.hash();
}

}  // namespace slalom::vm
