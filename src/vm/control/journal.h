// Journal: keeps what an execution tells until it has ended. Then it is known which memory its contexts
// shared, so that every access can say whether it is alone (Access::alone): nine of ten are, and whoever only
// cares for the order of accesses need not look at them.
//
// An execution of more than kMost of them is told as it goes from then on, and none of it is alone. So what
// is told is a function of the execution, wherever the machine is stopped.
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

  // Knows what was shared, and is told the instructions that may be points.
  explicit Journal(Communication& communication, size_t most = kMost)
      : communication_(communication), most_(most) {}

  Journal& begin(EventSink& reader);  // a new one
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;  // now the reader is told everything

 private:
  struct Part {  // accesses, then an event
    BatchHeader header;
    size_t end = 0;   // of its accesses
    Event event;      // op None: there is none
    size_t text = 0;  // where it begins
  };
  enum class Use : uint8_t { Alone, ByContexts, ByCpus };
  static constexpr size_t kPiece = 256;
  bool has_too_many(std::span<const Access> more);
  void look_at_shared();
  void mark(std::span<Access> accesses);
  void read_out(bool marks);
  Use use_of(uint64_t granule) const;

  Communication& communication_;
  size_t most_;
  EventSink* reader_ = nullptr;
  bool is_open_ = false;
  size_t made_ = 0;     // accesses, as far as they were counted
  size_t counted_ = 0;  // of accesses_
  std::vector<Access> accesses_;
  std::vector<Part> parts_;
  std::string texts_;  // of the events
  FlatMap<Use> shared_;
  // A bit for those of shared_, and so for some others: few, since of these there may be thousands.
  static constexpr uint64_t kSieve = uint64_t{1} << 16;
  std::array<uint64_t, kSieve / 64> sieve_{};
  std::array<Place, 512> noted_{};  // points
};

}  // namespace slalom::vm
