// Interrupts: the PIC, the IO-APIC, the local APICs, and the wires between them.
//
// Interrupt line n of a device is connected to line n of the PIC and to pin n of the IO-APIC, except that
// line 0 (the timer) is connected to pin 2, as on every PC. The PIC's output is connected to LINT0 of all
// CPUs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vm/devices/interrupts/io_apic.h"
#include "vm/devices/interrupts/local_apic.h"
#include "vm/devices/interrupts/pic.h"

namespace slalom::vm {

inline constexpr unsigned kMostCpus = 8;

// A pending interrupt of a CPU. The source is for people: two sources may share a vector.
struct PendingInterrupt {
  enum class Source : uint8_t { Timer, LocalVector, Line, Message, Pic, Nmi };
  Source source = Source::Message;
  uint8_t vector = 0;        // 2 for an NMI
  uint8_t line = 0;          // of the IO-APIC, if the source is Line
  bool deliverable = false;  // its priority is high enough; the CPU's own IF must allow it, too
  bool operator==(const PendingInterrupt&) const = default;
};

class Interrupts {
 public:
  struct State {
    Pic::State pic;
    IoApic::State io_apic;
    std::vector<LocalApic::State> local;
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.pic, s.io_apic, s.local);
    }
  };

  explicit Interrupts(unsigned cpus);
  unsigned cpus() const { return static_cast<unsigned>(local_.size()); }
  State state() const;
  bool set_state(const State& state);  // false, without a change, if this machine cannot be in that state

  // For devices and ports.
  void set_line(unsigned irq, bool asserted);
  void pulse_line(unsigned irq);
  void press_nmi_button();
  bool pic_read(uint16_t port, uint8_t& value) const { return pic_.read(port, value); }
  bool pic_write(uint16_t port, uint8_t value);
  bool io_apic_read(unsigned offset, uint32_t& value) const { return io_apic_.read(offset, value); }
  bool io_apic_write(unsigned offset, uint32_t value);
  bool local_read(Time now, unsigned cpu, unsigned offset, uint32_t& value);
  bool local_write(Time now, unsigned cpu, unsigned offset, uint32_t value);
  void set_local_enabled(unsigned cpu, bool enabled);
  void set_task_priority(unsigned cpu, uint8_t value);
  bool local_enabled(unsigned cpu) const { return local_[cpu].state().enabled; }

  // The timers of the local APICs.
  Time deadline() const;
  const LocalApic& local(unsigned cpu) const { return local_[cpu]; }
  void fire(Time now);

  // For CPUs.
  static constexpr uint8_t kVector = 1, kNmi = 2, kSignal = 4;
  uint8_t attention(unsigned cpu) const { return attention_[cpu]; }
  std::optional<uint8_t> acknowledge(unsigned cpu);
  // Even if others have priority over it; false if the processor priority blocks it.
  bool acknowledge(unsigned cpu, uint8_t vector);
  bool take_nmi(unsigned cpu);
  CpuSignal take_signal(unsigned cpu);
  std::optional<PendingInterrupt> next(unsigned cpu) const;
  // NMI, then those of the local APIC by priority, then the PIC's.
  std::vector<PendingInterrupt> pending(unsigned cpu) const;

  // What the guest requested that is not implemented; empty if nothing.
  const std::string& problem() const { return problem_; }

 private:
  bool external_waits(unsigned cpu) const { return pic_.output() && local_[cpu].passes_external(); }
  PendingInterrupt describe(unsigned cpu, uint8_t vector) const;
  void deliver(const ApicMessage& message, unsigned sender);
  void deliver_to(LocalApic& target, const ApicMessage& message);
  void refresh();

  Pic pic_;
  IoApic io_apic_;
  std::vector<LocalApic> local_;
  bool pic_output_ = false;  // the last state of the wire to LINT0
  std::array<uint8_t, kMostCpus> attention_{};
  std::string problem_;
};

}  // namespace slalom::vm
