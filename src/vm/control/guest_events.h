// GuestEvents: the lock and memory events of the guest's operating system, if it is known. It owns the
// guest's model, has its events emitted, and keeps the list of locks that are held.
//
// It also chooses the functions whose calls the tap reports: those of the model and those of the scope.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trace/facilities.h"
#include "vm/control/kernel_events.h"

namespace slalom::vm {

class GuestEvents final : public GuestSink {
 public:
  GuestEvents(Tap& tap, KernelEvents& events, const KernelMachineOptions& options)
      : tap_(tap), events_(events), options_(options) {}

  // Chooses the events that the model makes; accesses do not depend on it. Call it between executions. It
  // does not change them.
  void recognise(Facilities what);
  const GuestModel* model() const { return model_.get(); }  // nullptr if the guest is unknown

  void begin();  // a new execution
  std::vector<AgentId> holders(uint64_t lock) const;

  struct HeldLock {
    uint64_t lock = 0;
    AgentId by;  // a CPU's agent
    bool operator==(const HeldLock&) const = default;
  };
  struct Saved {
    std::unique_ptr<const GuestModel::Saved> model;  // nullptr without a model
    FunctionWatch::Open open;
    std::vector<HeldLock> locks;
  };
  Saved save() const;
  void restore(const Saved& saved);

  void on_guest_event(const Cpu& cpu, const GuestEvent& event) override;
  void on_guest_accesses(const Cpu&, std::span<const Access>, uint64_t, const GuestTask&) override {}

 private:
  void note_lock(unsigned cpu, const Event& event);

  Tap& tap_;
  KernelEvents& events_;
  const KernelMachineOptions& options_;
  std::optional<Facilities> recognised_;
  std::unique_ptr<GuestModel> model_;
  std::vector<HeldLock> locks_;  // in the order in which they were taken
};

}  // namespace slalom::vm
