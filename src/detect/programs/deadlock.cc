#include "detect/programs/deadlock.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "detect/core/titles.h"

namespace slalom {
namespace {

using Waiting = Deadlocked::Waiting;

const Waiting* find_waiting(const Deadlocked& deadlock, AgentId agent) {
  for (const Waiting& waiting : deadlock.waiting)
    if (waiting.agent == agent) return &waiting;
  return nullptr;
}

// Returns the agents on the shortest way along held_by from `start` back to it; empty if there is none.
std::vector<AgentId> shortest_cycle(const Deadlocked& deadlock, AgentId start) {
  struct Reached {
    AgentId agent;
    size_t from;  // index of the agent that reached it
  };
  std::vector<Reached> reached = {{start, 0}};
  for (size_t at = 0; at < reached.size(); ++at) {
    const Waiting* waiting = find_waiting(deadlock, reached[at].agent);
    if (waiting == nullptr) continue;
    for (AgentId holder : waiting->held_by) {
      if (holder == start) {
        std::vector<AgentId> cycle;
        for (size_t i = at; i != 0; i = reached[i].from) cycle.push_back(reached[i].agent);
        cycle.push_back(start);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      const bool known = std::any_of(reached.begin(), reached.end(),
                                     [&](const Reached& other) { return other.agent == holder; });
      if (!known) reached.push_back({holder, at});
    }
  }
  return {};
}

// Returns the number of items after which the sequence repeats itself. Symmetric copies in a ring say the
// same.
size_t period(const std::vector<std::string>& items) {
  for (size_t length = 1; length < items.size(); ++length) {
    if (items.size() % length != 0) continue;
    if (std::equal(items.begin() + static_cast<ptrdiff_t>(length), items.end(), items.begin())) return length;
  }
  return items.size();
}

}  // namespace

void DeadlockDetector::on_event(const Event& event) {
  switch (event.op) {
    case OpKind::TryLock:
      if (event.value == 0) return;
      [[fallthrough]];
    case OpKind::Lock:
    case OpKind::ReadLock:
    case OpKind::WriteLock:
    case OpKind::SemWait:  // of a semaphore that is used as a lock
    case OpKind::IrqEnter:
      state_.taken[combine(event.object.raw, event.agent.raw)] = Site::of(event);
      return;
    case OpKind::Wait:
    case OpKind::BarrierArrive:
      state_.parked[event.agent.raw] = Site::of(event);
      return;
    case OpKind::Signal:
    case OpKind::Broadcast:
      state_.lost_signals.on_event(event);
      return;
    default:
      return;
  }
}

void DeadlockDetector::on_end(const Outcome& outcome) {
  const auto* deadlock = std::get_if<Deadlocked>(&outcome);
  if (deadlock == nullptr) return;
  bool any_cycle = false;
  for (const Waiting& waiting : deadlock->waiting) {
    const std::vector<AgentId> agents = shortest_cycle(*deadlock, waiting.agent);
    if (agents.empty()) continue;
    any_cycle = true;
    std::vector<Wait> cycle;
    for (size_t i = 0; i < agents.size(); ++i)
      cycle.push_back({find_waiting(*deadlock, agents[i]), agents[(i + 1) % agents.size()]});
    if (reports_.deadlocks) report_cycle(*deadlock, std::move(cycle));
  }
  if (any_cycle) return;
  if (reports_.lost_wakeups && report_lost_wakeups(*deadlock)) return;
  if (reports_.deadlocks) report_roots(*deadlock);
}

void DeadlockDetector::report_cycle(const Deadlocked& deadlock, std::vector<Wait> cycle) {
  std::vector<std::string> texts;
  for (const Wait& wait : cycle) texts.push_back(wait_text(wait));
  std::vector<std::string> smallest = texts;
  size_t shift = 0;
  for (size_t i = 1; i < texts.size(); ++i) {
    std::vector<std::string> rotated = texts;
    std::rotate(rotated.begin(), rotated.begin() + static_cast<ptrdiff_t>(i), rotated.end());
    if (rotated < smallest) {
      smallest = std::move(rotated);
      shift = i;
    }
  }
  std::rotate(cycle.begin(), cycle.begin() + static_cast<ptrdiff_t>(shift), cycle.end());
  smallest.resize(period(smallest));

  Verdict verdict;
  verdict.kind = BugKind::Deadlock;
  verdict.title = fmt::format("deadlock: {}", fmt::join(smallest, "; "));
  verdict.detail = all_waits(deadlock);
  for (const Wait& wait : cycle) add_evidence(wait, verdict);
  report(std::move(verdict));
}

void DeadlockDetector::report_roots(const Deadlocked& deadlock) {
  std::set<std::string> texts;
  Verdict verdict;
  for (const Waiting& waiting : deadlock.waiting) {
    const bool behind_another =
        std::any_of(waiting.held_by.begin(), waiting.held_by.end(),
                    [&](AgentId holder) { return find_waiting(deadlock, holder) != nullptr; });
    if (behind_another) continue;
    const Wait wait{&waiting, waiting.held_by.empty() ? AgentId{} : waiting.held_by.front()};
    texts.insert(wait_text(wait) + (wait.holder ? ", which has ended" : ""));
    add_evidence(wait, verdict);
  }
  verdict.kind = BugKind::Deadlock;
  verdict.title = fmt::format("deadlock: {}", fmt::join(texts, "; "));
  verdict.detail = all_waits(deadlock);
  report(std::move(verdict));
}

bool DeadlockDetector::report_lost_wakeups(const Deadlocked& deadlock) {
  bool any = false;
  for (const Waiting& waiting : deadlock.waiting) {
    if (waiting.op != OpKind::Wait) continue;
    const auto signal = state_.lost_signals.latest(waiting.object, waiting.agent);
    if (!signal) continue;
    Verdict verdict = lost_wakeup(names_, waiting.object, *signal, parked_at(waiting));
    verdict.detail += ' ' + all_waits(deadlock);
    report(std::move(verdict));
    any = true;
  }
  return any;
}

std::string DeadlockDetector::wait_text(const Wait& wait) const {
  const Waiting& waiting = *wait.waiting;
  const std::string object = generic_name(names_.object(waiting.object));
  // Two agents of one role: without "another", the text would say that an agent waits for itself.
  const bool alike = wait.holder && names_.role(wait.holder) == names_.role(waiting.agent);
  const std::string role = wait.holder == waiting.agent ? "itself"
                           : alike                      ? "another " + names_.role(wait.holder)
                           : wait.holder                ? names_.role(wait.holder)
                                                        : "";
  std::string what = object;
  switch (waiting.op) {
    case OpKind::Join:
      return fmt::format("{} waits for the end of {}", names_.place(waiting.pc),
                         role.empty() ? object : role);
    case OpKind::None: {  // unknown object: the function says most
      const std::string place = names_.place(waiting.pc);
      return fmt::format("{} waits in {}", names_.role(waiting.agent), place.substr(0, place.find('+')));
    }
    case OpKind::CpuUse:  // the bug is the same wherever the agent was interrupted
      return fmt::format("{} waits for the end of interrupt {}", names_.role(waiting.agent), role);
    case OpKind::Wait:
      what = fmt::format("a signal of {}", object);
      break;
    case OpKind::SemWait:
      if (!wait.holder) what = fmt::format("a post of {}", object);
      break;
    case OpKind::BarrierArrive:
      what = fmt::format("others at {}", object);
      break;
    default:
      break;
  }
  return fmt::format("{} waits for {}{}{}", names_.place(waiting.pc), what, role.empty() ? "" : " held by ",
                     role);
}

void DeadlockDetector::add_evidence(const Wait& wait, Verdict& verdict) const {
  const Waiting& waiting = *wait.waiting;
  const std::string object = names_.object(waiting.object);
  const Site* taken = wait.holder ? state_.taken.find(combine(waiting.object.raw, wait.holder.raw)) : nullptr;
  if (waiting.op == OpKind::CpuUse && wait.holder) {
    if (taken != nullptr)
      verdict.evidence.push_back(taken->evidence(fmt::format("interrupts {}", names_.agent(waiting.agent))));
    verdict.evidence.push_back(parked_at(waiting).evidence(
        fmt::format("waits for the end of interrupt {}", names_.agent(wait.holder))));
    return;
  }
  if (taken != nullptr) verdict.evidence.push_back(taken->evidence(fmt::format("takes {}", object)));
  if (waiting.op == OpKind::None && waiting.object.raw == 0) {
    verdict.evidence.push_back(parked_at(waiting).evidence("waits"));
    return;
  }
  verdict.evidence.push_back(parked_at(waiting).evidence(fmt::format(
      "waits for {}{}", object, wait.holder ? fmt::format(" held by {}", names_.agent(wait.holder)) : "")));
}

std::string DeadlockDetector::all_waits(const Deadlocked& deadlock) const {
  std::vector<std::string> sentences;
  for (const Waiting& waiting : deadlock.waiting) {
    if (waiting.op == OpKind::CpuUse && !waiting.held_by.empty()) {
      sentences.push_back(fmt::format("{} is interrupted at {} by {}.", names_.agent(waiting.agent),
                                      names_.place(waiting.pc), names_.agent(waiting.held_by.front())));
      continue;
    }
    std::vector<std::string> holders;
    for (AgentId holder : waiting.held_by) {
      const Site* taken = state_.taken.find(combine(waiting.object.raw, holder.raw));
      holders.push_back(taken == nullptr
                            ? names_.agent(holder)
                            : fmt::format("{} since {}", names_.agent(holder), names_.place(taken->pc)));
    }
    if (waiting.op == OpKind::None && waiting.object.raw == 0) {  // a kernel's agent that waits for no lock
      sentences.push_back(
          fmt::format("{} waits at {}.", names_.agent(waiting.agent), names_.place(waiting.pc)));
      continue;
    }
    const std::string how = waiting.op == OpKind::None ? "" : fmt::format(" ({})", name(waiting.op));
    sentences.push_back(fmt::format("{} waits at {}{} for {}{}{}.", names_.agent(waiting.agent),
                                    names_.place(waiting.pc), how, names_.object(waiting.object),
                                    holders.empty() ? "" : ", held by ", fmt::join(holders, " and ")));
  }
  if (!deadlock.doubt.empty()) sentences.push_back(deadlock.doubt);
  return fmt::format("{}", fmt::join(sentences, " "));
}

Site DeadlockDetector::parked_at(const Waiting& waiting) const {
  // Most operations block before they happen. The blocked operation would have been the next step.
  const Site next{Step{last_step().raw + 1}, waiting.agent, waiting.pc, waiting.op};
  if (waiting.op != OpKind::Wait && waiting.op != OpKind::BarrierArrive) return next;
  const Site* parked = state_.parked.find(waiting.agent.raw);
  return parked == nullptr ? next : *parked;
}

}  // namespace slalom
