// Arena: memory for many small objects that are accessed at random. Objects start at lines of the host's
// cache and lie in huge pages if the host has them: otherwise the host's address translation would take
// longer than the access itself.
//
// Memory that is given back is reused for objects of the same size. The arena's destructor frees everything.
// Not for few or large objects.
#pragma once

#include <cstddef>
#include <vector>

namespace slalom::vm {

class Arena {
 public:
  Arena() = default;
  ~Arena() { clear(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static constexpr size_t kLine = 64;
  static constexpr size_t kMost = 8192;  // bytes of one object

  void* take(size_t bytes) {
    const size_t lines = lines_of(bytes);
    if (lines < free_.size() && !free_[lines].empty()) {
      void* again = free_[lines].back();
      free_[lines].pop_back();
      return again;
    }
    if (lines > left_) begin_chunk();
    void* taken = next_;
    next_ += lines * kLine;
    left_ -= lines;
    return taken;
  }
  void give_back(void* memory, size_t bytes) {
    const size_t lines = lines_of(bytes);
    if (lines >= free_.size()) free_.resize(lines + 1);
    free_[lines].push_back(memory);
  }
  void clear();

 private:
  static constexpr size_t kChunk = size_t{2} << 20;  // the size of a huge page
  static size_t lines_of(size_t bytes) { return (bytes + kLine - 1) / kLine; }
  void begin_chunk();

  std::vector<void*> chunks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;                       // free lines of the last chunk
  std::vector<std::vector<void*>> free_;  // by number of lines
};

}  // namespace slalom::vm
