// Pc: the whole virtual machine: CPUs, memory and devices, one CPU running at a time.
//
// Time is a function of executed instructions. Left alone, CPUs take turns: each runs for a quantum, or until
// it halts or pauses. Who runs, and for how long, depends on the machine's state only, never on how run() is
// called, so that a run in slices equals one in one go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/entry_state.h"
#include "vm/cpu/cpu.h"
#include "vm/devices/devices.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

inline constexpr uint64_t kNanosecondsPerInstruction = 8;
inline constexpr uint64_t kTscKhz = 1'000'000;  // one tick a nanosecond

struct PcOptions {
  unsigned cpus = 1;  // 1 .. 8
  uint64_t memory = uint64_t{256} << 20;
  uint64_t start_seconds = 1'600'000'000;  // what the clock shows first
};

enum class PcStop : uint8_t {
  Budget,    // ran what it was given
  PowerOff,  // the guest switched itself off
  Reset,     // the guest asked to be started again, or a CPU gave up (triple fault)
  Exit,      // the guest ended with a code (debug exit port)
  Idle,      // every CPU waits for an interrupt that no device will send
  Unknown,   // something that is not implemented: Pc::trouble() tells
};

class Pc final : public Bus {
 public:
  static Result<std::unique_ptr<Pc>> make(const PcOptions& options);
  ~Pc() override;

  void enter(const EntryState& entry);  // CPU 0 there, the others wait to be started
  PcStop run(uint64_t instructions);

  unsigned cpu_count() const { return static_cast<unsigned>(system_.cpus.size()); }
  Cpu& cpu(unsigned i) { return *system_.cpus[i]; }
  Ram& ram() { return *ram_; }
  Devices& devices() { return devices_; }
  uint64_t executed() const { return state_.executed; }  // instructions of all CPUs
  uint64_t time() const { return state_.time; }          // virtual nanoseconds
  const std::string& trouble() const { return trouble_; }
  int exit_code() const { return exit_code_; }  // after PcStop::Exit

  // Of everything the guest can observe: all RAM, registers and devices.
  uint64_t state_hash();

  // Checkpoints form a tree, as those of Ram. Decoded code survives a restore.
  using Checkpoint = uint32_t;
  Checkpoint take();
  void restore(Checkpoint id);
  void drop(Checkpoint id);

  // Who runs, besides what CPUs, RAM and devices hold.
  struct Turns {
    uint64_t executed = 0;
    uint64_t time = 0;
    uint32_t current = 0;
    uint32_t quantum = 0;  // what is left of it

    bool operator==(const Turns&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.executed, s.time, s.current, s.quantum);
    }
  };
  const Turns& turns() const { return state_; }
  // Everything but RAM, as values: for files that hold a machine.
  struct Rest {
    Turns turns;
    std::vector<Registers> cpus;
    // Of each CPU. Mostly in the code segment's selector, but not between the switch to protected mode and
    // the jump that follows it.
    std::vector<uint8_t> privileges;
    Devices::State devices;

    bool operator==(const Rest&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.turns, s.cpus, s.privileges, s.devices);
    }
  };
  Rest rest() const;
  // Refuses what no machine of this shape can hold.
  Result<void> set_rest(const Rest& rest);

  // Bus
  bool in(unsigned cpu, uint16_t port, unsigned size, uint32_t& value) override;
  bool out(unsigned cpu, uint16_t port, unsigned size, uint32_t value) override;
  bool is_device(Physical address) const override;
  bool read(unsigned cpu, Physical address, unsigned size, uint64_t& value) override;
  bool write(unsigned cpu, Physical address, unsigned size, uint64_t value) override;
  uint64_t apic_base(unsigned cpu) const override { return devices_.read_apic_base(cpu); }
  bool set_apic_base(unsigned cpu, uint64_t value) override { return devices_.write_apic_base(cpu, value); }
  uint64_t now() const override;
  bool attention(unsigned cpu, bool interrupts_enabled) const override;

 private:
  Pc(const PcOptions& options, std::unique_ptr<Ram> ram);
  bool runnable(unsigned cpu) const;
  bool next_turn();  // false: nobody can run
  void take_signals();
  PcStop stop_for_power();
  void deliver_interrupts(Cpu& cpu);
  std::string describe_trouble(Cpu& cpu) const;

  struct Saved;
  std::unique_ptr<Ram> ram_;
  Devices devices_;
  System system_;
  Turns state_;
  Cpu* running_ = nullptr;
  uint64_t planned_ = 0;  // the deadline that the running slice was cut for
  std::optional<PowerEvent> power_;
  std::string trouble_;
  int exit_code_ = 0;
  std::vector<std::unique_ptr<Saved>> saved_;  // by Ram::Checkpoint
};

}  // namespace slalom::vm
