// InstructionTrace: writes every instruction of an execution as lines of text, with the registers that it
// changed, its accesses and their values, calls and returns, interrupts and faults. docs/formats.md describes
// the lines.
//
// It writes while the execution is replayed, so memory use does not depend on the length. The check after the
// flows is only included on request, because it may be a hundred times as long.
#pragma once

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/names.h"
#include "vm/cpu/observe/tap.h"
#include "vm/replay/scheduled_run.h"

namespace slalom::vm {

class InstructionTrace : TapSink {
 public:
  // The run must stand at its beginning.
  InstructionTrace(ScheduledRun& run, const Names& names, std::FILE* out);
  ~InstructionTrace() override;
  InstructionTrace(const InstructionTrace&) = delete;
  InstructionTrace& operator=(const InstructionTrace&) = delete;

  // These return false if the output cannot be written.
  bool write_flows();
  bool write_check();  // after write_flows()
  uint64_t instructions() const { return step_; }

 private:
  struct Decoded {
    std::array<uint8_t, 15> bytes{};  // the bytes that were decoded
    size_t size = 0;                  // length of the instruction
    std::string text;                 // address, place and instruction
    std::string line;                 // of source code; may be empty
  };
  struct StateBefore {  // state of a CPU before its next instruction
    uint64_t rip = 0, retired = 0, flags = 0;
    std::array<uint64_t, 16> gpr{};
    const Decoded* decoded = nullptr;  // nullptr: decode it after it was executed
  };

  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override;
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override;

  const Decoded& decode(const Cpu& cpu, uint64_t rip);
  void record_before(unsigned cpu);
  void leads_to(const Cpu& cpu);
  // Executes one instruction of one of these CPUs. Returns false if there was none.
  bool instruction(std::span<const unsigned> cpus);
  void add(std::string& to, unsigned cpu, std::string_view kind, std::string_view text) const;
  std::string place(uint64_t address);
  std::string object(uint64_t address);
  void flush(size_t keep);

  ScheduledRun& run_;
  const Names& names_;
  std::FILE* out_;
  Tap tap_;
  uint64_t step_ = 0;
  std::optional<unsigned> last_;   // the CPU of the last instruction
  std::vector<StateBefore> cpus_;  // by CPU
  std::string before_;             // lines for what comes before an instruction
  std::string after_;              // lines for what the instruction does
  std::string buffer_;
  bool failed_ = false;
  std::map<uint64_t, Decoded> decoded_;
  std::map<uint64_t, std::string> places_, objects_;
};

}  // namespace slalom::vm
