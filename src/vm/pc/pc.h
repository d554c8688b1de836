// Pc: the whole virtual machine: CPUs, memory and devices, one CPU running at a time.
//
// Time is a function of executed instructions. Left alone, CPUs take turns: each runs for a quantum, or until
// it halts, pauses, or fails the same exchange with memory several times. Quanta vary, so that no loop of a
// guest keeps step with them. Who runs, and for how long, depends on the machine's state only, never on how
// run() is called, so that a run in slices equals one in one go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/cpu/cpu.h"
#include "vm/devices/devices.h"
#include "vm/memory/ram.h"
#include "vm/pc/entry_state.h"

namespace slalom::vm {

// Goes up when the machine would go on differently from the same state: an instruction or a device that was
// wrong, another order of turns. A changed list of fields shows by itself (layout_hash). Snapshots of another
// version are made anew; kernel capsules of another version are refused.
inline constexpr unsigned kMachineVersion = 2;

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
  Reset,     // the guest asked to be started again
  Shutdown,  // a CPU gave up (triple fault): Cpu::last_faults, and Pc::trouble() in words
  Exit,      // the guest ended with a code (debug exit port)
  Idle,      // every CPU waits for an interrupt that no device will send
  Unknown,   // something that is not implemented: Pc::trouble() tells
  // While observed or under control, all before the next instruction of Pc::current():
  Place,      // a place to stop at
  Access,     // a watched access: Cpu::hit
  Halted,     // HLT
  Paused,     // PAUSE
  Event,      // what was asked for with StopOn: Cpu::happened
  Hypercall,  // which the Hypercalls did not answer by themselves
  Window,     // an interrupt has become deliverable
};

// Whoever answers the guest's hypercalls (guest/slalom.h). Called between instructions.
class Hypercalls {
 public:
  virtual ~Hypercalls() = default;
  // False: the machine stops, with PcStop::Hypercall.
  virtual bool on_hypercall(Cpu& cpu) = 0;
};

// What ends a controlled run besides its budget.
struct RunOptions {
  uint64_t instructions = ~uint64_t{0};
  uint64_t passes = 0;                       // places that are passed before one stops,
  const PendingAccesses* pending = nullptr;  // stop before a conflict with one of these, too
  uint8_t stop_on = 0;                       // of Cpu::kIret, kFault
  bool stop_at_window = false;     // where interrupts may have become deliverable to any CPU, and are
  std::optional<uint8_t> offered;  // the one that waits for this CPU is no reason to stop, if it is this
  bool keeps_batch = false;        // what was observed before a place is told later: by who flushes the tap
};

class Pc final : public Bus {
 public:
  static Result<std::unique_ptr<Pc>> make(const PcOptions& options);
  ~Pc() override;

  void enter(const EntryState& entry);  // CPU 0 there, the others wait to be started
  PcStop run(uint64_t instructions);

  // --- control: one CPU at a time, as told ---
  // Runs only that CPU, which must be able to run. No interrupt is delivered; timers become pending when
  // their time comes.
  PcStop run_cpu(unsigned cpu, const RunOptions& options);
  bool runnable(unsigned cpu) const;     // runs, or has an interrupt that would wake it
  bool can_deliver(unsigned cpu) const;  // IF, priority and the shadow of STI allow some interrupt
  std::optional<uint8_t> next_vector(unsigned cpu) const;  // of those that wait; the first by priority
  // Delivers a pending interrupt, or the one that a CPU would take first. False: not now.
  bool deliver(unsigned cpu, uint8_t vector);
  bool deliver(unsigned cpu);
  // Lets virtual time pass up to the next timer. False: none is set.
  bool skip_to_timer();
  // The vector of a CPU's own timer, if that is set, could be delivered now, and has not come yet.
  std::optional<uint8_t> early_timer(unsigned cpu) const;
  bool timer_requested(unsigned cpu) const;    // it has come, and waits
  void skip_to_timer(unsigned cpu);            // that one's
  uint64_t passed() const { return passed_; }  // places, in the last run_cpu()
  unsigned current() const { return state_.current; }
  // A parked CPU does not take turns in run(); run_cpu() and deliver() do not care.
  void park(unsigned cpu, bool parked);
  bool parked(unsigned cpu) const { return (state_.parked >> cpu) & 1; }
  // Kept as long as it is attached; null: nobody observes. What is in its batch is told before every return.
  void attach(Tap* tap);
  void set_places(Places places);
  // False: every instruction is translated and decoded anew. Slow; for comparing with.
  void set_remembers(bool remembers);
  void set_hypercalls(Hypercalls* hypercalls) { hypercalls_ = hypercalls; }

  unsigned cpu_count() const { return static_cast<unsigned>(system_.cpus.size()); }
  Cpu& cpu(unsigned i) { return *system_.cpus[i]; }
  Ram& ram() { return *ram_; }
  Devices& devices() { return devices_; }
  uint64_t executed() const { return state_.executed; }    // instructions of all CPUs
  uint64_t time() const { return state_.time; }            // virtual nanoseconds
  const std::string& trouble() const { return trouble_; }  // after PcStop::Unknown or Shutdown
  const Cpu* gave_up() const;                              // after PcStop::Shutdown
  int exit_code() const { return exit_code_; }             // after PcStop::Exit

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
    uint32_t parked = 0;   // a bit for each CPU that run() leaves alone, interrupts included

    bool operator==(const Turns&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.executed, s.time, s.current, s.quantum, s.parked);
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
  uint8_t task_priority(unsigned cpu) const override {
    return devices_.local_apic(cpu).state().task_priority;
  }
  void set_task_priority(unsigned cpu, uint8_t value) override;
  uint64_t now() const override;
  bool attention(unsigned cpu, bool interrupts_enabled) const override;

 private:
  Pc(const PcOptions& options, std::unique_ptr<Ram> ram);
  Result<void> put_rest(const Rest& rest);  // without forgetting translations
  bool next_turn();                         // false: nobody can run
  void begin_turn(unsigned cpu);
  void take_signals();
  PcStop stop_for_power();
  PcStop stop_for_shutdown(Cpu& cpu);
  void deliver_interrupts(Cpu& cpu);
  bool enter_interrupt(Cpu& cpu, uint8_t vector);
  Exit run_slice(Cpu& cpu, uint64_t instructions);
  std::optional<PcStop> stop_for(Cpu& cpu, Exit exit);
  uint32_t others_deliverable(unsigned id) const;  // CPUs to which interrupts could be
  std::string describe_trouble(Cpu& cpu) const;

  std::unique_ptr<Ram> ram_;
  Devices devices_;
  System system_;
  Turns state_;
  Cpu* running_ = nullptr;
  uint64_t planned_ = 0;  // the deadline that the running slice was cut for
  std::optional<PowerEvent> power_;
  std::string trouble_;
  int exit_code_ = 0;
  Hypercalls* hypercalls_ = nullptr;
  uint64_t passed_ = 0;
  std::optional<uint32_t> others_deliverable_;  // when the run began, if that is watched
  std::vector<std::unique_ptr<Rest>> saved_;    // by Ram::Checkpoint
};

}  // namespace slalom::vm
