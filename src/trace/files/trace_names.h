// The names in a trace file, which make it complete in itself.
//
// NameCollector notes which agents, places, objects and system calls occur, and asks for the names of new
// ones. StoredNames returns the names; a number without a name is shown as a number. The memory of both grows
// with the number of different addresses and lines of code, not with the length of the trace.
#pragma once

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "trace/names.h"
#include "trace/sink.h"

namespace slalom {

class StoredNames final : public Names {
 public:
  std::string agent(AgentId id) const override;
  std::string role(AgentId id) const override;
  std::string object(ObjectId id) const override;
  std::string place(Place pc) const override;
  std::string source(Place pc) const override;
  std::string line(Place pc) const override;
  std::string system_call(AgentId agent, uint64_t ordinal, int64_t number) const override;
  std::string system_result(int64_t value) const override;
  Marking marking(Place pc, bool writes) const override;

  // Reads the contents of a block of names. A name that is known is replaced.
  void decode(ByteReader& in);

 private:
  struct OfPlace {
    std::string place, source, line;
    Marking reads = Marking::Unknown, writes = Marking::Unknown;
  };
  const OfPlace* find(Place pc) const;
  void decode_one(ByteReader& in);

  std::map<AgentId, std::pair<std::string, std::string>> agents_;  // name and role
  std::unordered_map<uint64_t, OfPlace> places_;
  std::unordered_map<uint64_t, std::string> objects_;
  std::map<int64_t, std::string> calls_, results_;
  std::map<std::pair<AgentId, uint64_t>, std::pair<int64_t, std::string>> calls_of_agents_;
  uint64_t size_ = 0;  // bytes of text
};

class NameCollector {
 public:
  explicit NameCollector(const Names& names) : names_(names) {}

  void note(std::span<const Access> accesses, const BatchHeader& header);
  void note(const Event& event);
  void note(const Outcome& outcome);

  // Asks for the names of everything noted since the last call. They go to `out` in pieces: `full` is called
  // whenever enough for one block is there.
  template <typename Full>
  void write(ByteWriter& out, Full full) {
    for (const Noted& noted : new_) {
      encode(out, noted);
      if (out.bytes().size() >= kPiece) full();
    }
    new_.clear();
  }
  // Notes the agents again, because the machine may have learned their names since. Call it at the end.
  void note_agents_again();

 private:
  static constexpr size_t kPiece = size_t{1} << 20;
  enum class What : uint8_t { Agent, Place, Object, Call, AgentsCall, Result };
  friend class StoredNames;
  struct Noted {
    What what;
    uint64_t number = 0;   // of the agent, the place, the object; of the call or the result, as unsigned
    uint64_t ordinal = 0;  // of the agent's call
    AgentId agent;         // of the agent's call
  };

  // The numbers seen before. Forgets everything when it is full, which only makes names repeat.
  class Seen {
   public:
    Seen() {  // no slot holds a number that belongs there
      uint64_t other = 1;
      while (slot(other) == slot(0)) ++other;
      recent_[slot(0)] = other;
    }
    bool add(uint64_t number) {
      uint64_t& recent = recent_[slot(number)];
      if (recent == number) return false;
      recent = number;
      if (all_.size() >= kMost) all_.clear();
      return all_.insert(number).second;
    }

   private:
    static constexpr size_t kMost = 1'000'000;
    static constexpr size_t kSlots = 4096;
    static size_t slot(uint64_t number) { return mix(number) % kSlots; }
    std::array<uint64_t, kSlots> recent_{};  // most numbers were just seen
    std::unordered_set<uint64_t> all_;       // never iterated over
  };

  void agent(AgentId id);
  void place(Place pc);
  void object(ObjectId id);
  void encode(ByteWriter& out, const Noted& noted) const;

  const Names& names_;
  std::vector<Noted> new_;
  std::vector<AgentId> agents_;
  Seen seen_agents_, seen_places_, seen_objects_, seen_calls_, seen_results_;
  std::map<AgentId, uint64_t> made_;  // system calls of each agent
};

}  // namespace slalom
