#include "detect/programs/thread_leak.h"

namespace slalom {

void ThreadLeakDetector::on_event(const Event& event) {
  if (event.op == OpKind::Spawn) state_.started[event.other] = Site::of(event);
  if (event.op == OpKind::Note && event.text == kLeakedThread) state_.leaked.push_back(event.other);
}

void ThreadLeakDetector::on_end(const Outcome& outcome) {
  if (!std::holds_alternative<Exited>(outcome)) return;
  for (AgentId agent : state_.leaked) {
    const auto started = state_.started.find(agent);
    if (started == state_.started.end()) continue;
    const Site& start = started->second;
    Verdict verdict{BugKind::Leak, Severity::Suspicion, {}, {}, {}};
    verdict.title =
        fmt::format("leak of thread {} started at {}", names_.role(agent), names_.place(start.pc));
    verdict.detail = fmt::format("{} is still there when the program ends, neither joined nor detached.",
                                 names_.agent(agent));
    verdict.evidence.push_back(start.evidence(fmt::format("starts {}", names_.agent(agent))));
    report(std::move(verdict));
  }
}

}  // namespace slalom
