// AgentTable gives the agents of one execution small dense numbers, in order of first appearance. AgentSet is
// a set of such numbers. Both are for the search's inner loops only: the numbers mean nothing outside the
// execution that made them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/flat_map.h"
#include "trace/agent.h"

namespace slalom {

inline constexpr size_t kMaxAgents = 1024;  // the most agents that a program may have

class AgentSet {
 public:
  void add(size_t index) { words_[index / 64] |= uint64_t{1} << (index % 64); }
  void remove(size_t index) { words_[index / 64] &= ~(uint64_t{1} << (index % 64)); }
  bool has(size_t index) const { return (words_[index / 64] >> (index % 64)) & 1; }
  bool empty() const { return words_ == std::array<uint64_t, kMaxAgents / 64>{}; }
  bool intersects(const AgentSet& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
  }
  AgentSet& operator|=(const AgentSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  AgentSet& operator&=(const AgentSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  AgentSet& operator-=(const AgentSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  uint64_t hash() const {
    uint64_t hash = 0;
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i] != 0) hash += combine(i, words_[i]);  // most words are 0
    return hash;
  }

 private:
  std::array<uint64_t, kMaxAgents / 64> words_{};
};

class AgentTable {
 public:
  size_t index(AgentId agent) {
    uint32_t& number = numbers_[agent.raw];  // the agent's number plus one; 0 if it is new
    if (number == 0) {
      CHECK(agents_.size() < kMaxAgents, "more than {} agents in one execution", kMaxAgents);
      agents_.push_back(agent);
      number = static_cast<uint32_t>(agents_.size());
    }
    return number - 1;
  }
  size_t size() const { return agents_.size(); }
  AgentId agent(size_t index) const { return agents_[index]; }
  void clear() {
    agents_.clear();
    numbers_.clear();
  }

 private:
  std::vector<AgentId> agents_;
  FlatMap<uint32_t> numbers_;
};

}  // namespace slalom
