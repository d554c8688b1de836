// States: values that hold everything that a guest can observe of one part of the machine.
//
// A State lists its fields once. Hashing, saving and loading visit that list:
//
//   struct Pit {
//     uint16_t reload = 0;
//     std::array<Channel, 3> channels;
//     bool operator==(const Pit&) const = default;
//     template <class Self, class Visitor>
//     static void fields(Self& s, Visitor& v) { v(s.reload, s.channels); }
//   };
//
// A State does not contain what can be computed from it (caches, decoded blocks, host pointers).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"

namespace slalom::vm {

class StateHasher {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (visit(fields), ...);
  }
  uint64_t hash() const { return hash_; }

 private:
  template <class T>
  void visit(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      hash_ = combine(hash_, static_cast<uint64_t>(value));
    else
      T::fields(value, *this);
  }
  template <class T, size_t n>
  void visit(const std::array<T, n>& values) {
    for (const T& value : values) visit(value);
  }
  template <class T>
  void visit(const std::vector<T>& values) {
    hash_ = combine(hash_, values.size());
    for (const T& value : values) visit(value);
  }
  template <class T>
  void visit(const std::deque<T>& values) {
    hash_ = combine(hash_, values.size());
    for (const T& value : values) visit(value);
  }
  void visit(const std::string& value) { hash_ = combine(hash_, hash_text(value)); }

  uint64_t hash_ = 0;
};

template <class State>
uint64_t hash_state(const State& state) {
  StateHasher hasher;
  hasher(state);
  return hasher.hash();
}

class StateWriter {
 public:
  explicit StateWriter(ByteWriter& out) : out_(out) {}
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (visit(fields), ...);
  }

 private:
  template <class T>
  void visit(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
      out_.u64(static_cast<uint64_t>(value));
    else
      T::fields(value, *this);
  }
  template <class T, size_t n>
  void visit(const std::array<T, n>& values) {
    for (const T& value : values) visit(value);
  }
  template <class T>
  void visit(const std::vector<T>& values) {
    out_.u64(values.size());
    for (const T& value : values) visit(value);
  }
  template <class T>
  void visit(const std::deque<T>& values) {
    out_.u64(values.size());
    for (const T& value : values) visit(value);
  }
  void visit(const std::string& value) { out_.text(value); }

  ByteWriter& out_;
};

// Checks only that values fit their types. The code that loads a State must check ranges (enums, indices)
// afterwards.
class StateReader {
 public:
  explicit StateReader(ByteReader& in) : in_(in) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (visit(fields), ...);
  }

 private:
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const uint64_t read = in_.u64();
      if (read > 1) in_.fail();
      value = read == 1;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const uint64_t read = in_.u64();
      value = static_cast<T>(read);
      if (static_cast<uint64_t>(value) != read) in_.fail();
    } else {
      T::fields(value, *this);
    }
  }
  template <class T, size_t n>
  void visit(std::array<T, n>& values) {
    for (T& value : values) visit(value);
  }
  template <class T>
  void visit(std::vector<T>& values) {
    values.resize(in_.count());
    for (T& value : values) visit(value);
  }
  template <class T>
  void visit(std::deque<T>& values) {
    values.resize(in_.count());
    for (T& value : values) visit(value);
  }
  void visit(std::string& value) { value = in_.text(); }

  ByteReader& in_;
};

}  // namespace slalom::vm
