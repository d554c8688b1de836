// CommunicationLearner: finds the memory that several contexts of an execution access, at least one of them
// writing, and all instructions that access it (SKI, section 4). Unlike learn/conflicts.h it ignores the
// order of the accesses, so one execution teaches more, and also instructions that are no use.
//
// A context is a CPU, or the interrupts that have interrupted it. Memory that a CPU shares only with its own
// interrupts makes places only in code that the user of this class names: in a whole kernel it would make
// most of the places, because single instructions or disabled interrupts guard per-CPU data. Memory is
// tracked by physical address, in granules of eight bytes. Accesses to different bytes of one granule count
// as communication: this adds places but misses none.
//
// vm/control/communication.h does the same inside the virtual machine, faster; a test compares the two. They
// differ in two cases. The stream does not show interrupts that the search does not decide about: they belong
// to their CPU here, and are contexts there. And in an execution with a scope, accesses outside of the scope
// teach nothing here, and there all that code of the scope does counts.
#pragma once

#include <vector>

#include "base/flat_map.h"
#include "trace/knowledge.h"

namespace slalom {

class CommunicationLearner final : public Learner {
 public:
  // In code from `begin` up to `end`, memory that a CPU shares with its own interrupts makes places, too.
  explicit CommunicationLearner(Place begin = {}, Place end = {}) : begin_(begin), end_(end) {}

  void reset() override;
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}
  const Knowledge& knowledge() override;

 private:
  static constexpr unsigned kMostAgents = 64;
  // The agents that read and wrote a granule, one bit each. All agents beyond the limit share the last bit.
  struct Users {
    uint64_t readers = 0, writers = 0;
  };
  struct Instruction {
    uint64_t pc = 0, granule = 0;
  };
  enum class Sharing : uint8_t { None, ByInterrupts, ByCpus };
  unsigned bit_of(AgentId agent);
  AgentId cpu_of(AgentId agent) const;
  Sharing sharing(const Users& users) const;

  const Place begin_, end_;
  std::vector<AgentId> agents_;        // by bit
  FlatMap<uint64_t> interrupted_;      // by the agent of an interrupt: its CPU
  FlatMap<Users> users_;               // by granule
  FlatMap<Instruction> instructions_;  // by hash of both fields
  Knowledge knowledge_;
};

}  // namespace slalom
