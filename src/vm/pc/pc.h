// Pc: the whole virtual machine: CPUs, memory and devices. One CPU runs at a time.
//
// Time is a function of the executed instructions. In run() the CPUs take turns: each runs for a quantum, or
// until it halts, pauses, or fails the same exchange with memory several times. Quanta vary, so that no loop
// of a guest stays in step with them. The order and length of turns depend only on the machine's state, not
// on how run() is called: a run in slices equals a run in one go.
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

// Increment this when the machine behaves differently from the same state: after a fix of an instruction or a
// device, or another order of turns. A changed list of fields changes layout_hash by itself. Snapshots of
// another version are made anew; kernel capsules of another version are refused.
inline constexpr unsigned kMachineVersion = 2;

inline constexpr uint64_t kNanosecondsPerInstruction = 8;
inline constexpr uint64_t kTscKhz = 1'000'000;  // one tick per nanosecond

struct PcOptions {
  unsigned cpus = 1;  // 1 to 8
  uint64_t memory = uint64_t{256} << 20;
  uint64_t start_seconds = 1'600'000'000;  // initial time of the clock
};

enum class PcStop : uint8_t {
  Budget,    // executed the given number of instructions
  PowerOff,  // the guest switched the machine off
  Reset,     // the guest requested a reset
  Shutdown,  // a CPU shut down (triple fault): see Cpu::last_faults and Pc::trouble()
  Exit,      // the guest ended with an exit code (debug exit port)
  Idle,      // all CPUs wait for an interrupt, and no device will send one
  Unknown,   // the guest used something that is not implemented: see Pc::trouble()
  // Only if observed or under control, before the next instruction of Pc::current():
  Place,      // a place to stop at
  Access,     // a watched access: Cpu::hit
  Halted,     // HLT
  Paused,     // PAUSE
  Event,      // an event of RunOptions::stop_on: see Cpu::happened
  Hypercall,  // a hypercall that Hypercalls did not answer completely
  Window,     // an interrupt has become deliverable
};

// Answers the guest's hypercalls (guest/slalom.h). Called between instructions.
class Hypercalls {
 public:
  virtual ~Hypercalls() = default;
  // Returns false to stop the machine with PcStop::Hypercall.
  virtual bool on_hypercall(Cpu& cpu) = 0;
};

// What ends a controlled run, besides its number of instructions.
struct RunOptions {
  uint64_t instructions = ~uint64_t{0};
  uint64_t passes = 0;                       // number of places to pass before stopping at one
  const PendingAccesses* pending = nullptr;  // stop before a conflict with one of these, too
  uint8_t stop_on = 0;                       // Cpu::kIret, Cpu::kFault
  bool stop_at_window = false;               // stop when an interrupt becomes deliverable to any CPU
  std::optional<uint8_t> offered;            // do not stop at a window for this pending interrupt of the CPU
  bool keeps_batch = false;  // leave the tap's batch to the caller, who flushes it, when stopping at a place
};

class Pc final : public Bus {
 public:
  static Result<std::unique_ptr<Pc>> make(const PcOptions& options);
  ~Pc() override;

  void enter(const EntryState& entry);  // starts CPU 0 there; the other CPUs wait to be started
  PcStop run(uint64_t instructions);

  // --- control: the caller decides which CPU runs ---
  // Runs only this CPU, which must be able to run. Delivers no interrupts; timers become pending when they
  // are due.
  PcStop run_cpu(unsigned cpu, const RunOptions& options);
  bool runnable(unsigned cpu) const;     // running, or halted with an interrupt that would wake it
  bool can_deliver(unsigned cpu) const;  // IF, priority and the shadow of STI allow an interrupt now
  std::optional<uint8_t> next_vector(unsigned cpu) const;  // the pending interrupt of highest priority
  // Delivers this pending interrupt, or the one that the CPU would take first. Returns false if that is
  // impossible now.
  bool deliver(unsigned cpu, uint8_t vector);
  bool deliver(unsigned cpu);
  // Advances virtual time to the next timer. Returns false if none is set.
  bool skip_to_timer();
  // The vector of the CPU's own timer, if it is set, could be delivered now, and is not yet pending.
  std::optional<uint8_t> early_timer(unsigned cpu) const;
  bool timer_requested(unsigned cpu) const;    // its timer interrupt is pending
  void skip_to_timer(unsigned cpu);            // advances virtual time to this CPU's timer
  uint64_t passed() const { return passed_; }  // number of places passed in the last run_cpu()
  unsigned current() const { return state_.current; }
  // A parked CPU takes no turns in run(). run_cpu() and deliver() ignore this.
  void park(unsigned cpu, bool parked);
  bool parked(unsigned cpu) const { return (state_.parked >> cpu) & 1; }
  // The tap must stay valid while it is attached; nullptr: no observer. Its batch is flushed before every
  // return.
  void attach(Tap* tap);
  void set_places(Places places);
  // false: translate and decode every instruction anew. Slow; for comparisons.
  void set_caching(bool caching);
  void set_hypercalls(Hypercalls* hypercalls) { hypercalls_ = hypercalls; }

  unsigned cpu_count() const { return static_cast<unsigned>(system_.cpus.size()); }
  Cpu& cpu(unsigned i) { return *system_.cpus[i]; }
  Ram& ram() { return *ram_; }
  Devices& devices() { return devices_; }
  uint64_t executed() const { return state_.executed; }    // instructions of all CPUs
  uint64_t time() const { return state_.time; }            // virtual nanoseconds
  const std::string& trouble() const { return trouble_; }  // after PcStop::Unknown or Shutdown
  const Cpu* gave_up() const;                              // the CPU that shut down, after PcStop::Shutdown
  int exit_code() const { return exit_code_; }             // after PcStop::Exit

  // A hash of everything that the guest can observe: all RAM, registers and devices.
  uint64_t state_hash();

  // Checkpoints form a tree, like those of Ram. Decoded code survives a restore.
  using Checkpoint = uint32_t;
  Checkpoint take();
  void restore(Checkpoint id);
  void drop(Checkpoint id);

  // The machine's state besides its CPUs, RAM and devices.
  struct Turns {
    uint64_t executed = 0;
    uint64_t time = 0;
    uint32_t current = 0;
    uint32_t quantum = 0;  // instructions left of the current turn
    uint32_t parked = 0;   // a bit for each CPU that run() ignores, including its interrupts

    bool operator==(const Turns&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.executed, s.time, s.current, s.quantum, s.parked);
    }
  };
  const Turns& turns() const { return state_; }
  // All state except RAM, as values: for files that hold a machine.
  struct Rest {
    Turns turns;
    std::vector<Registers> cpus;
    // By CPU. Usually equal to the code selector's, but not between the switch to protected mode and the jump
    // after it.
    std::vector<uint8_t> privileges;
    Devices::State devices;

    bool operator==(const Rest&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.turns, s.cpus, s.privileges, s.devices);
    }
  };
  Rest rest() const;
  // Returns an error if no machine of this shape can be in that state.
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
  Result<void> put_rest(const Rest& rest);  // without dropping cached translations
  bool next_turn();                         // false if no CPU can run
  void begin_turn(unsigned cpu);
  void take_signals();
  PcStop stop_for_power();
  PcStop stop_for_shutdown(Cpu& cpu);
  void deliver_interrupts(Cpu& cpu);
  bool enter_interrupt(Cpu& cpu, uint8_t vector);
  Exit run_slice(Cpu& cpu, uint64_t instructions);
  std::optional<PcStop> stop_for(Cpu& cpu, Exit exit);
  uint32_t others_deliverable(unsigned id) const;  // other CPUs that could take an interrupt, as bits
  std::string describe_trouble(Cpu& cpu) const;

  std::unique_ptr<Ram> ram_;
  Devices devices_;
  System system_;
  Turns state_;
  Cpu* running_ = nullptr;
  uint64_t planned_ = 0;  // next device deadline when the running slice was planned
  std::optional<PowerEvent> power_;
  std::string trouble_;
  int exit_code_ = 0;
  Hypercalls* hypercalls_ = nullptr;
  uint64_t passed_ = 0;
  // Value at the beginning of the run, if the run stops at windows.
  std::optional<uint32_t> others_deliverable_;
  std::vector<std::unique_ptr<Rest>> saved_;  // by Ram::Checkpoint
};

}  // namespace slalom::vm
