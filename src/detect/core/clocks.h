// ClockTable: vector clocks as the rows of one matrix, so that one memcpy copies all of them.
//
// A row has one component per agent, in the order of the agents' dense indices. Components that were never
// set are 0. Row 0 belongs to no agent and stays zero, so 0 can mean "no row".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slalom {

class ClockTable {
 public:
  uint32_t add_row() {
    words_.resize(words_.size() + width_);
    return rows_++;
  }
  // Makes room for agents with indices below `agents`.
  void widen(uint32_t agents);

  uint32_t* row(uint32_t index) { return words_.data() + static_cast<size_t>(index) * width_; }
  const uint32_t* row(uint32_t index) const { return words_.data() + static_cast<size_t>(index) * width_; }
  // into = the component-wise maximum of into and from
  void join(uint32_t into, uint32_t from);
  void copy(uint32_t into, uint32_t from) { std::copy_n(row(from), width_, row(into)); }

  void clear() {
    rows_ = 1;
    words_.assign(width_, 0);
  }

 private:
  static constexpr uint32_t kFirstWidth = 8;

  uint32_t width_ = kFirstWidth;
  uint32_t rows_ = 1;
  std::vector<uint32_t> words_ = std::vector<uint32_t>(kFirstWidth);
};

}  // namespace slalom
