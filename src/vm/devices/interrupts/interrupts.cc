#include "vm/devices/interrupts/interrupts.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace slalom::vm {

namespace {

constexpr unsigned kNobody = ~0u;  // sender of the IO-APIC's messages: no CPU

}  // namespace

Interrupts::Interrupts(unsigned cpus) {
  CHECK(cpus >= 1 && cpus <= kMostCpus, "a machine of {} CPUs", cpus);
  for (unsigned cpu = 0; cpu < cpus; ++cpu) local_.emplace_back(cpu);
}

Interrupts::State Interrupts::state() const {
  State state{pic_.state(), io_apic_.state(), {}};
  for (const LocalApic& local : local_) state.local.push_back(local.state());
  return state;
}

bool Interrupts::set_state(const State& state) {
  if (!Pic::valid(state.pic) || !IoApic::valid(state.io_apic) || state.local.size() != local_.size())
    return false;
  for (size_t cpu = 0; cpu < local_.size(); ++cpu)
    if (!LocalApic::valid(state.local[cpu]) || state.local[cpu].id != cpu) return false;
  pic_.set_state(state.pic);
  io_apic_.set_state(state.io_apic);
  for (size_t cpu = 0; cpu < local_.size(); ++cpu) local_[cpu].set_state(state.local[cpu]);
  pic_output_ = pic_.output();
  problem_.clear();
  refresh();
  return true;
}

void Interrupts::refresh() {
  if (pic_.output() && !pic_output_)
    for (LocalApic& local : local_) local.lint0_rose();
  pic_output_ = pic_.output();
  for (unsigned cpu = 0; cpu < local_.size(); ++cpu) {
    const LocalApic& local = local_[cpu];
    uint8_t attention = 0;
    if (local.ready_vector() >= 0 || external_waits(cpu)) attention |= kVector;
    if (local.state().nmi) attention |= kNmi;
    if (local.state().init || local.state().startup) attention |= kSignal;
    attention_[cpu] = attention;
  }
}

void Interrupts::set_line(unsigned irq, bool asserted) {
  pic_.set_line(irq, asserted);
  const unsigned pin = irq == 0 ? 2 : irq;
  if (const auto message = io_apic_.set_line(pin, asserted)) deliver(*message, kNobody);
  refresh();
}

void Interrupts::pulse_line(unsigned irq) {
  set_line(irq, false);
  set_line(irq, true);
}

void Interrupts::press_nmi_button() {
  for (LocalApic& local : local_) local.nmi_button();
  refresh();
}

bool Interrupts::pic_write(uint16_t port, uint8_t value) {
  const bool known = pic_.write(port, value);
  refresh();
  return known;
}

bool Interrupts::io_apic_write(unsigned offset, uint32_t value) {
  const IoApic::Effect effect = io_apic_.write(offset, value);
  if (effect.message) deliver(*effect.message, kNobody);
  refresh();
  return effect.known && problem_.empty();
}

bool Interrupts::local_read(Time now, unsigned cpu, unsigned offset, uint32_t& value) {
  const bool known = local_[cpu].read(now, offset, value);
  refresh();  // reading a reserved register may raise the error interrupt
  return known;
}

bool Interrupts::local_write(Time now, unsigned cpu, unsigned offset, uint32_t value) {
  const LocalApic::Effect effect = local_[cpu].write(now, offset, value);
  if (effect.message) deliver(*effect.message, cpu);
  if (effect.end_of_level_vector)
    for (const ApicMessage& message : io_apic_.end_of_interrupt(*effect.end_of_level_vector))
      deliver(message, kNobody);
  refresh();
  return effect.known && problem_.empty();
}

void Interrupts::set_local_enabled(unsigned cpu, bool enabled) {
  local_[cpu].set_enabled(enabled);
  refresh();
}

void Interrupts::set_task_priority(unsigned cpu, uint8_t value) {
  local_[cpu].set_task_priority(value);
  refresh();
}

void Interrupts::deliver_to(LocalApic& target, const ApicMessage& message) {
  switch (message.delivery) {
    case Delivery::Fixed:
    case Delivery::LowestPriority:
      target.request(message.vector, message.level);
      break;
    case Delivery::Nmi:
      target.request_nmi();
      break;
    case Delivery::Init:
      target.request_init();
      break;
    case Delivery::Startup:
      target.request_startup(message.vector);
      break;
    case Delivery::Smi:
    case Delivery::Reserved:
    case Delivery::ExtInt:
      problem_ = "an IO-APIC entry delivers SMI or ExtINT, which is not implemented";
      break;
  }
}

void Interrupts::deliver(const ApicMessage& message, unsigned sender) {
  std::vector<LocalApic*> targets;
  for (unsigned cpu = 0; cpu < local_.size(); ++cpu) {
    bool wanted = false;
    switch (message.shorthand) {
      case Shorthand::None:
        wanted = local_[cpu].is_target(message.logical, message.destination);
        break;
      case Shorthand::Self:
        wanted = cpu == sender;
        break;
      case Shorthand::All:
        wanted = true;
        break;
      case Shorthand::Others:
        wanted = cpu != sender;
        break;
    }
    if (wanted) targets.push_back(&local_[cpu]);
  }
  if (message.delivery == Delivery::LowestPriority) {
    // Real buses arbitrate. Here the first CPU of the lowest priority is always chosen.
    std::erase_if(targets, [](const LocalApic* local) { return !local->accepts_interrupts(); });
    const auto chosen =
        std::min_element(targets.begin(), targets.end(), [](const LocalApic* a, const LocalApic* b) {
          return a->processor_priority() < b->processor_priority();
        });
    if (chosen != targets.end()) targets = {*chosen};
  }
  for (LocalApic* target : targets) deliver_to(*target, message);
}

Time Interrupts::deadline() const {
  Time earliest = kNever;
  for (const LocalApic& local : local_) earliest = std::min(earliest, local.deadline());
  return earliest;
}

void Interrupts::fire(Time now) {
  for (LocalApic& local : local_)
    if (local.deadline() <= now) local.fire(now);
  refresh();
}

std::optional<uint8_t> Interrupts::acknowledge(unsigned cpu) {
  std::optional<uint8_t> vector;
  if (local_[cpu].ready_vector() >= 0)
    vector = local_[cpu].acknowledge();
  else if (external_waits(cpu))
    vector = pic_.acknowledge();
  refresh();
  return vector;
}

bool Interrupts::acknowledge(unsigned cpu, uint8_t vector) {
  bool taken = local_[cpu].acknowledge(vector);
  if (!taken)
    for (const PendingInterrupt& one : pending(cpu))
      if (one.source == PendingInterrupt::Source::Pic && one.vector == vector && one.deliverable) {
        pic_.acknowledge();
        taken = true;
      }
  refresh();
  return taken;
}

bool Interrupts::take_nmi(unsigned cpu) {
  const bool was = local_[cpu].take_nmi();
  refresh();
  return was;
}

CpuSignal Interrupts::take_signal(unsigned cpu) {
  const CpuSignal signal = local_[cpu].take_signal();
  refresh();
  return signal;
}

PendingInterrupt Interrupts::describe(unsigned cpu, uint8_t vector) const {
  const LocalApic& local = local_[cpu];
  PendingInterrupt found{PendingInterrupt::Source::Message, vector, 0, local.outranks(vector)};
  if (vector == local.lvt_vector(LocalApic::kTimer)) {
    found.source = PendingInterrupt::Source::Timer;
  } else if (vector == local.lvt_vector(LocalApic::kError)) {
    found.source = PendingInterrupt::Source::LocalVector;
  } else if (const int pin = io_apic_.pin_of(vector); pin >= 0) {
    found.source = PendingInterrupt::Source::Line;
    found.line = static_cast<uint8_t>(pin);
  }
  return found;
}

std::vector<PendingInterrupt> Interrupts::pending(unsigned cpu) const {
  std::vector<PendingInterrupt> all;
  const LocalApic& local = local_[cpu];
  if (local.state().nmi) all.push_back({PendingInterrupt::Source::Nmi, 2, 0, true});
  const auto& request = local.state().request;
  for (size_t word = request.size(); word-- > 0;)
    for (uint32_t left = request[word]; left != 0;) {
      const unsigned bit = 31u - static_cast<unsigned>(std::countl_zero(left));
      left &= ~(1u << bit);
      all.push_back(describe(cpu, static_cast<uint8_t>(word * 32 + bit)));
    }
  if (external_waits(cpu)) all.push_back({PendingInterrupt::Source::Pic, pic_.next_vector(), 0, true});
  return all;
}

std::optional<PendingInterrupt> Interrupts::next(unsigned cpu) const {
  const LocalApic& local = local_[cpu];
  if (local.state().nmi) return PendingInterrupt{PendingInterrupt::Source::Nmi, 2, 0, true};
  if (local.ready_vector() >= 0) return describe(cpu, static_cast<uint8_t>(local.ready_vector()));
  if (external_waits(cpu))
    return PendingInterrupt{PendingInterrupt::Source::Pic, pic_.next_vector(), 0, true};
  return std::nullopt;
}

}  // namespace slalom::vm
