#include "vm/control/kernel_machine.h"

namespace slalom::vm {

struct KernelMachine::Checkpoints::Saved {
  State machine;
  KernelContexts::State contexts;
  KernelEvents::Saved events;
  GuestEvents::Saved guest;
  KernelConsole::State console;
  TestProtocol::State protocol;
};

KernelMachine::Checkpoints::Checkpoints(KernelMachine& machine) : m_(machine) {}
KernelMachine::Checkpoints::~Checkpoints() = default;

Snapshots::Id KernelMachine::Checkpoints::take() {
  const Id id = m_.machine_.pc->take();
  if (saved_.size() <= id) saved_.resize(id + 1);
  saved_[id] = std::make_unique<Saved>(Saved{m_.state_, m_.contexts_.save(), m_.events_.save(),
                                             m_.guest_.save(), m_.console_.save(), m_.protocol_.save()});
  return id;
}

Stop KernelMachine::Checkpoints::restore(Id id) {
  CHECK(id < saved_.size() && saved_[id] != nullptr, "no checkpoint {}", id);
  const Saved& saved = *saved_[id];
  m_.machine_.pc->restore(static_cast<Pc::Checkpoint>(id));
  m_.state_ = saved.machine;
  m_.events_.restore(saved.events);
  m_.guest_.restore(saved.guest);  // before the contexts, which look at its open calls
  m_.console_.restore(saved.console);
  m_.protocol_.restore(saved.protocol);
  m_.contexts_.restore(saved.contexts);
  m_.knowledge_.places.clear();
  m_.passed_ = 0;
  return m_.choice_point();
}

void KernelMachine::Checkpoints::drop(Id id) {
  m_.machine_.pc->drop(static_cast<Pc::Checkpoint>(id));
  saved_[id].reset();
}

}  // namespace slalom::vm
