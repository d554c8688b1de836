#include "detect/kernels/kernel_livelock.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace slalom {

void KernelLivelockDetector::on_event(const Event& event) {
  if (event.op == OpKind::SyscallEnter) {
    KernelLivelockState::Calls& calls = state_.flows[event.agent];
    calls = {calls.made + 1, Site::of(event), event.value, true};
  } else if (event.op == OpKind::SyscallExit) {
    state_.flows[event.agent].inside = false;
  }
}

void KernelLivelockDetector::on_end(const Outcome& outcome) {
  const auto* limit = std::get_if<LimitReached>(&outcome);
  if (limit == nullptr || limit->limit == LimitReached::Limit::Notes) return;
  Verdict verdict;
  verdict.kind = BugKind::Livelock;
  std::vector<std::string> names;
  for (const AgentId agent : limit->enabled) {
    names.push_back(names_.agent(agent));
    const auto calls = state_.flows.find(agent);
    if (calls == state_.flows.end() || calls->second.made == 0) continue;
    const auto& [made, last, number, inside] = calls->second;
    const std::string call = names_.system_call(agent, made - 1, number);
    const std::string after = inside ? ", which has not returned" : "";
    verdict.evidence.push_back(last.evidence(fmt::format("its last call: {}{}", call, after)));
  }
  const std::string who = names.empty() ? "the check" : fmt::format("{}", fmt::join(names, ", "));
  verdict.title = fmt::format("livelock: {} {} not end", who, names.size() > 1 ? "do" : "does");
  verdict.detail =
      fmt::format("{} had not ended after {} instructions. If that is only slow, [limits] gives it more.",
                  who, limit->steps);
  report(std::move(verdict));
}

}  // namespace slalom
