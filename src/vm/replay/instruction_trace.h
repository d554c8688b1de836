// InstructionTrace: every instruction of an execution as a line of text, with the registers it changed, its
// accesses with their values, calls and returns, interrupts and faults. The lines are in docs/formats.md.
//
// Made step by step while the execution is gone through again, so that its length does not matter. The check
// after the flows is part of it where that is asked for: it may be a hundred times as long.
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
  // The run stands at its begin.
  InstructionTrace(ScheduledRun& run, const Names& names, std::FILE* out);
  ~InstructionTrace() override;
  InstructionTrace(const InstructionTrace&) = delete;
  InstructionTrace& operator=(const InstructionTrace&) = delete;

  // False: what is written to does not take it.
  bool write_flows();
  bool write_check();  // after the flows
  uint64_t instructions() const { return step_; }

 private:
  struct Decoded {
    std::array<uint8_t, 15> bytes{};  // that this was made of
    size_t size = 0;                  // of the instruction
    std::string text;                 // address, place, instruction
    std::string line;                 // of its source; may be empty
  };
  struct Before {  // what a CPU was like before the instruction that comes next
    uint64_t rip = 0, retired = 0, flags = 0;
    std::array<uint64_t, 16> gpr{};
    const Decoded* decoded = nullptr;  // null: not known before it is executed
  };

  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override;
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override;

  const Decoded& decode(const Cpu& cpu, uint64_t rip);
  void look(unsigned cpu);
  void leads_to(const Cpu& cpu);
  // One instruction, of one of these CPUs. False: there was none.
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
  std::optional<unsigned> last_;  // the CPU of the last instruction
  std::vector<Before> cpus_;      // by CPU
  std::string before_;            // the lines of what came before an instruction,
  std::string after_;             // and of what it does
  std::string buffer_;
  bool failed_ = false;
  std::map<uint64_t, Decoded> decoded_;
  std::map<uint64_t, std::string> places_, objects_;
};

}  // namespace slalom::vm
