// Journal: holds back the accesses and events of an execution until its end. By then it is known which memory
// the contexts shared, so the journal can mark every unshared access as private (Access::is_private). Nine of
// ten accesses are. Readers that only need the order of accesses can skip those.
//
// If an execution makes more than kMost accesses, the journal emits everything so far, passes on the rest at
// once, and marks no access as private. This way the output depends only on the execution, not on where the
// machine was stopped.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "trace/sink.h"
#include "vm/control/communication.h"

namespace slalom::vm {

class Journal final : public EventSink {
 public:
  static constexpr size_t kMost = size_t{1} << 18;

  // Asks `communication` which memory was shared, and adds the instructions that may be points to it.
  explicit Journal(Communication& communication, size_t most = kMost)
      : communication_(communication), most_(most) {}

  Journal& begin(EventSink& reader);  // starts a new execution
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;  // passes everything to the reader

 private:
  struct Part {  // accesses, followed by an event
    BatchHeader header;
    size_t end = 0;   // index behind its last access
    Event event;      // op None: no event
    size_t text = 0;  // where its text begins in texts_
  };
  enum class Use : uint8_t { Alone, ByContexts, ByCpus };
  static constexpr size_t kPiece = 256;
  bool has_too_many(std::span<const Access> more);
  void index_shared();
  void mark(std::span<Access> accesses);
  void read_out(bool marks);
  Use use_of(uint64_t granule) const;

  Communication& communication_;
  size_t most_;
  EventSink* reader_ = nullptr;
  bool is_open_ = false;
  size_t made_ = 0;     // accesses counted so far, without calls and returns
  size_t counted_ = 0;  // how many of accesses_ were counted
  std::vector<Access> accesses_;
  std::vector<Part> parts_;
  std::string texts_;  // of all events
  FlatMap<Use> shared_;
  // A Bloom filter with one hash for shared_: few other granules have their bit set, since shared_ has only
  // some thousand entries.
  static constexpr uint64_t kSieve = uint64_t{1} << 16;
  std::array<uint64_t, kSieve / 64> sieve_{};
  std::array<Place, 512> noted_{};  // points that were added recently
};

}  // namespace slalom::vm
