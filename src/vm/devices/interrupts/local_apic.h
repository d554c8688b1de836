// LocalApic: the interrupt controller of one CPU, with its timer (Intel SDM volume 3, chapter "APIC", xAPIC
// mode).
//
// Raising an interrupt (setting a bit in the request register) and delivering it (acknowledge) are separate:
// a scheduler may let any amount of time pass in between. Messages to other CPUs are returned, not sent: see
// devices/interrupts/interrupts.h.
//
// Not implemented: x2APIC, TSC deadline, SMI, a movable base address. Requests for these are reported as
// unknown.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "vm/devices/interrupts/apic_message.h"
#include "vm/devices/virtual_time.h"

namespace slalom::vm {

class LocalApic {
 public:
  using Bits = std::array<uint32_t, 8>;  // one bit per vector
  enum Lvt : uint8_t { kTimer, kThermal, kPerformance, kLint0, kLint1, kError, kLvtCount };

  struct State {
    uint8_t id = 0;
    bool enabled = true;  // bit 11 of the APIC base register
    uint8_t task_priority = 0;
    uint32_t logical_destination = 0;
    uint32_t destination_format = 0xffffffff;
    uint32_t spurious = 0xff;
    Bits in_service{};
    Bits trigger_mode{};
    Bits request{};
    uint32_t errors = 0;         // latched by the last write
    uint32_t errors_so_far = 0;  // since the last latch
    uint32_t command_low = 0;
    uint32_t command_high = 0;
    std::array<uint32_t, kLvtCount> lvt{};
    uint32_t timer_initial = 0;
    uint8_t timer_divide = 0;  // the register's value; see divisor()
    Time timer_end = kNever;   // when the count reaches zero; kNever: it stands still at zero
    bool nmi = false;
    bool init = false;
    bool startup = false;  // processed after init, if both are set
    uint8_t startup_vector = 0;
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.id, s.enabled, s.task_priority, s.logical_destination, s.destination_format, s.spurious,
        s.in_service, s.trigger_mode, s.request, s.errors, s.errors_so_far, s.command_low, s.command_high,
        s.lvt, s.timer_initial, s.timer_divide, s.timer_end, s.nmi, s.init, s.startup, s.startup_vector);
    }
  };

  // The state after firmware has run: CPU 0 receives the PIC's interrupts through LINT0 ("virtual wire").
  explicit LocalApic(unsigned cpu);

  const State& state() const { return state_; }
  static bool valid(const State& state);
  void set_state(const State& state);

  // Registers, by offset from the base. false or !known: no such register, or not implemented.
  bool read(Time now, unsigned offset, uint32_t& value);
  struct Effect {
    bool known = true;
    std::optional<ApicMessage> message = std::nullopt;          // to send
    std::optional<uint8_t> end_of_level_vector = std::nullopt;  // to report to the IO-APIC
  };
  Effect write(Time now, unsigned offset, uint32_t value);
  void set_enabled(bool enabled);
  void set_task_priority(uint8_t value);

  bool is_target(bool logical, uint8_t destination) const;
  bool accepts_interrupts() const { return state_.enabled && (state_.spurious & kSoftwareEnable) != 0; }
  void request(uint8_t vector, bool level);
  // Pin LINT0 has risen. ExtInt is a level, not an event: see passes_external().
  void lint0_rose();
  void nmi_button();
  void request_nmi() { state_.nmi = true; }
  void request_init();
  void request_startup(uint8_t vector);

  Time deadline() const;  // of the timer; kNever also if its end has no effect
  void fire(Time now);

  int ready_vector() const { return ready_; }  // the request that the processor priority allows; -1: none
  bool passes_external() const { return external_; }
  // Moves the ready request into service; returns the spurious vector if there is none.
  uint8_t acknowledge();
  // A request that need not be the first; false if the processor priority blocks it.
  bool acknowledge(uint8_t vector);
  bool take_nmi();
  CpuSignal take_signal();  // Init comes before Startup, and resets everything except the identity
  bool is_requested(uint8_t vector) const { return (state_.request[vector / 32] >> (vector % 32)) & 1; }
  uint8_t processor_priority() const;
  bool outranks(uint8_t vector) const { return (vector >> 4) > (processor_priority() >> 4); }
  uint8_t lvt_vector(Lvt entry) const { return static_cast<uint8_t>(state_.lvt[entry]); }

 private:
  static constexpr uint32_t kSoftwareEnable = 1 << 8;
  static constexpr uint32_t kMasked = 1 << 16;
  static constexpr uint32_t kPeriodic = 1 << 17;

  bool masked(Lvt entry) const { return (state_.lvt[entry] & kMasked) != 0; }
  uint64_t divisor() const;
  uint64_t period() const { return uint64_t{state_.timer_initial} * divisor(); }
  uint32_t current_count(Time now);
  void settle(Time now);  // handles past ends of a timer whose interrupt is masked
  void report_error(uint32_t bit);
  bool write_lvt(Time now, Lvt entry, uint32_t value);
  Effect send();
  void refresh();

  State state_;
  int ready_ = -1;
  bool external_ = false;
};

}  // namespace slalom::vm
