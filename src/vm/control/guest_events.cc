#include "vm/control/guest_events.h"

#include <algorithm>

#include "trace/lock_change.h"

namespace slalom::vm {

void GuestEvents::recognise(Facilities what) {
  what.accesses = true;
  if (recognised_ == what) return;
  recognised_ = what;
  tap_.functions = FunctionWatch();
  events_.set_model(nullptr);
  model_.reset();
  if (options_.make_model != nullptr && (what.locks || what.memory)) {
    const GuestModelOptions wanted{.locks = what.locks, .memory = what.memory, .pages = what.memory};
    model_ = options_.make_model(wanted, *this);
    model_->watch(tap_);
    events_.set_model(model_.get());
  }
  options_.scope.watch(tap_.functions);
}

void GuestEvents::begin() {
  if (model_ != nullptr) model_->restore(nullptr);
  tap_.functions.set_open({});
  locks_.clear();
}

GuestEvents::Saved GuestEvents::save() const {
  return {model_ == nullptr ? nullptr : model_->save(), tap_.functions.open(), locks_};
}

void GuestEvents::restore(const Saved& saved) {
  if (model_ != nullptr) model_->restore(saved.model.get());
  tap_.functions.set_open(saved.open);
  locks_ = saved.locks;
}

void GuestEvents::on_guest_event(const Cpu& cpu, const GuestEvent& guest) {
  Event event = guest.event;
  event.recognised = true;
  if (event.op == OpKind::TryLock) event.value = 1;  // emitted only if the lock was taken
  note_lock(cpu.id, event);
  events_.defer(cpu.id, event);
}

void GuestEvents::note_lock(unsigned cpu, const Event& event) {
  const HeldLock mine{event.object.raw, KernelContexts::cpu_agent(cpu)};
  const LockChange change = lock_change(event.op, event.value);
  if (change == LockChange::Take) {
    locks_.push_back(mine);
  } else if (change == LockChange::Release) {
    if (const auto held = std::ranges::find(locks_, mine); held != locks_.end()) locks_.erase(held);
  }
}

std::vector<AgentId> GuestEvents::holders(uint64_t lock) const {
  std::vector<AgentId> all;
  for (const HeldLock& held : locks_)
    if (held.lock == lock) all.push_back(held.by);
  return all;
}

}  // namespace slalom::vm
