#include "detect/programs/lost_wakeup.h"

#include "base/hash.h"
#include "detect/core/titles.h"

namespace slalom {

void LostSignals::on_event(const Event& event) {
  if ((event.op != OpKind::Signal && event.op != OpKind::Broadcast) || event.value != 0) return;
  signals_[combine(event.object.raw, event.agent.raw)] = {event.object, Site::of(event)};
}

std::optional<Site> LostSignals::latest(ObjectId condvar, AgentId waiter) const {
  std::optional<Site> latest;
  signals_.for_each([&](uint64_t, const LostSignal& signal) {
    if (signal.condvar != condvar || signal.site.agent == waiter) return;
    if (!latest || latest->step < signal.site.step) latest = signal.site;
  });
  return latest;
}

Verdict lost_wakeup(const Names& names, ObjectId condvar, const Site& signal, const Site& wait) {
  const std::string object = names.object(condvar);
  const std::string signal_place = names.place(signal.pc);
  const std::string wait_place = names.place(wait.pc);
  Verdict verdict;
  verdict.kind = BugKind::LostWakeup;
  verdict.title = fmt::format("lost wakeup: {} at {} woke nobody, then {} waits for {}", name(signal.op),
                              signal_place, wait_place, generic_name(object));
  verdict.detail = fmt::format("The {} of {} by {} at {} came before {} waited at {}, and no other follows.",
                               name(signal.op), object, names.agent(signal.agent), signal_place,
                               names.agent(wait.agent), wait_place);
  verdict.evidence = {signal.evidence(fmt::format("{} of {} wakes nobody", name(signal.op), object)),
                      wait.evidence(fmt::format("waits for {} for ever", object))};
  return verdict;
}

}  // namespace slalom
