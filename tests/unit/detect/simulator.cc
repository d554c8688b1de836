#include "unit/detect/simulator.h"

#include <algorithm>
#include <bitset>

#include "base/rng.h"

namespace slalom::test {
namespace {

class Simulator {
 public:
  Simulator(uint64_t seed, const SimulatorOptions& options) : rng_(seed), options_(options) {}

  Script run() {
    for (int i = 0; i < 3; ++i) agents_.push_back({fmt::format("t{}", i)});
    // Some draws do nothing, and an execution in which all agents wait goes nowhere. Hence the limit.
    const auto steps = static_cast<uint64_t>(options_.steps);
    for (uint64_t draws = 0; script_.steps() < steps && draws < 20 * steps; ++draws) {
      const uint64_t who = rng_.below(agents_.size() + 2);
      if (who == agents_.size()) {
        handler();
      } else if (who == agents_.size() + 1) {
        timer();
      } else if (runnable(agents_[who])) {
        step(who);
      }
    }
    script_.end(Exited{});
    return std::move(script_);
  }

 private:
  struct Agent {
    std::string name;
    enum class Status { Ready, Parked, Relock, Ended } status = Status::Ready;
    std::vector<std::string> held = {};  // mutexes
    bool reads = false, writes = false;  // the reader-writer lock
  };

  bool runnable(const Agent& agent) const {
    if (agent.status == Agent::Status::Relock) return !is_held("m0");
    return agent.status == Agent::Status::Ready && !(in_handler_ && agent.name == "t0");
  }
  bool is_held(const std::string& mutex) const {
    return std::any_of(agents_.begin(), agents_.end(), [&](const Agent& agent) {
      return std::find(agent.held.begin(), agent.held.end(), mutex) != agent.held.end();
    });
  }
  std::string here() const { return fmt::format("p{}", script_.steps()); }
  void event(OpKind op, const std::string& who, const std::string& object, const Script::Extra& extra = {}) {
    script_.event(op, who, object, here(), extra);
  }

  void access(const std::string& who) {
    static constexpr OpKind kOps[] = {
        OpKind::Load,       OpKind::Load,        OpKind::Store,           OpKind::Store,
        OpKind::AtomicLoad, OpKind::AtomicStore, OpKind::ReadModifyWrite, OpKind::CompareExchange};
    const OpKind op = kOps[rng_.below(std::size(kOps))];
    std::string object = fmt::format("x{}", rng_.below(4));
    uint32_t size = 8;
    if (options_.mixed_sizes) {
      size = 1 + static_cast<uint32_t>(rng_.below(16));
      object += fmt::format("+{}", rng_.below(24));
    }
    script_.access(op, who, object, here(), size, 0, op == OpKind::CompareExchange && rng_.below(2) == 0);
  }

  void step(uint64_t index) {
    Agent& agent = agents_[index];
    if (agent.status == Agent::Status::Relock) {
      event(OpKind::Lock, agent.name, "m0");
      agent.held.push_back("m0");
      agent.status = Agent::Status::Ready;
      return;
    }
    if (rng_.below(100) >= static_cast<uint64_t>(options_.sync_percent)) return access(agent.name);
    const std::string mutex = fmt::format("m{}", rng_.below(2));
    const auto holding = std::find(agent.held.begin(), agent.held.end(), mutex);
    const auto anyone = [&](auto member) {
      return std::any_of(agents_.begin(), agents_.end(), [&](const Agent& other) { return other.*member; });
    };
    switch (rng_.below(14)) {
      case 0:
      case 1:
      case 2:
        if (holding != agent.held.end()) {
          event(OpKind::Unlock, agent.name, mutex);
          agent.held.erase(holding);
        } else if (!is_held(mutex)) {
          const bool tries = rng_.below(3) == 0;
          event(tries ? OpKind::TryLock : OpKind::Lock, agent.name, mutex, {0, "", tries});
          agent.held.push_back(mutex);
        } else {
          event(OpKind::TryLock, agent.name, mutex, {1, "", 0});
        }
        return;
      case 3:
      case 4:
        if (agent.reads || agent.writes) {
          event(agent.reads ? OpKind::ReadUnlock : OpKind::WriteUnlock, agent.name, "rw");
          agent.reads = agent.writes = false;
        } else if (!anyone(&Agent::writes) && (anyone(&Agent::reads) || rng_.below(2) == 0)) {
          event(OpKind::ReadLock, agent.name, "rw");
          agent.reads = true;
        } else if (!anyone(&Agent::writes)) {
          event(OpKind::WriteLock, agent.name, "rw");
          agent.writes = true;
        }
        return;
      case 5:
        event(OpKind::SemPost, agent.name, "s");
        ++count_;
        return;
      case 6:
        if (count_ == 0) return;
        event(OpKind::SemWait, agent.name, "s");
        --count_;
        return;
      case 7:
        if (std::find(agent.held.begin(), agent.held.end(), "m0") == agent.held.end()) return;
        event(OpKind::Wait, agent.name, "c");
        event(OpKind::Unlock, agent.name, "m0");
        std::erase(agent.held, "m0");
        agent.status = Agent::Status::Parked;
        waiters_.push_back(index);
        return;
      case 8:
        event(OpKind::Signal, agent.name, "c", {0, "", waiters_.empty() ? 0 : 1});
        if (waiters_.empty()) return;
        event(OpKind::Wake, agent.name, "c", {0, agents_[waiters_.front()].name, 0});
        agents_[waiters_.front()].status = Agent::Status::Relock;
        waiters_.erase(waiters_.begin());
        return;
      case 9:
        event(OpKind::BarrierArrive, agent.name, "b");
        if (arrived_.empty()) {
          agent.status = Agent::Status::Parked;
          arrived_.push_back(index);
          return;
        }
        event(OpKind::Wake, agent.name, "b", {0, agents_[arrived_.front()].name, 0});
        agents_[arrived_.front()].status = Agent::Status::Ready;
        arrived_.clear();
        return;
      case 10:
        return family(index);
      case 11:
        if (agent.name != "t0") return;
        event(masked_ ? OpKind::IrqUnmask : OpKind::IrqMask, "t0", "cpu");
        masked_ = !masked_;
        return;
      case 12:
        event(OpKind::IrqRaise, agent.name, "irq");
        event(OpKind::Wake, agent.name, "irq", {0, "handler", 0});
        return;
      default:
        event(OpKind::TimerArm, agent.name, "timer");
        event(OpKind::Wake, agent.name, "timer", {0, "timer agent", 0});
        armed_ = true;
    }
  }

  // Spawns, joins or ends. An agent's object has the agent's name.
  void family(uint64_t index) {
    const std::string name = agents_[index].name;
    if (agents_.size() < 12 && rng_.below(2) == 0) {  // more agents than a ClockTable holds at first
      const std::string child = fmt::format("t{}", agents_.size());
      event(OpKind::Spawn, name, child, {0, child, 0});
      agents_.push_back({child});
      return;
    }
    for (const Agent& other : agents_) {
      if (other.status != Agent::Status::Ended || rng_.below(2) == 0) continue;
      event(OpKind::Join, name, other.name, {1, other.name, 0});
      return;
    }
    if (index == 0 || !agents_[index].held.empty() || agents_[index].reads || agents_[index].writes) return;
    event(OpKind::Exit, name, name, {0, name, 0});
    agents_[index].status = Agent::Status::Ended;
  }

  void handler() {
    if (!in_handler_) {
      if (masked_) return;
      event(OpKind::IrqEnter, "handler", "cpu");
      in_handler_ = true;
    } else if (rng_.below(3) != 0) {
      access("handler");
    } else {
      event(OpKind::IrqExit, "handler", "cpu");
      in_handler_ = false;
    }
  }

  void timer() {
    if (!in_timer_) {
      if (!armed_) return;
      event(OpKind::TimerFire, "timer agent", "timer");
      armed_ = false;
      in_timer_ = true;
    } else if (rng_.below(3) != 0) {
      access("timer agent");
    } else {
      in_timer_ = false;
    }
  }

  Rng rng_;
  SimulatorOptions options_;
  Script script_;
  std::vector<Agent> agents_;
  std::vector<uint64_t> waiters_, arrived_;
  int count_ = 0;
  bool masked_ = false, in_handler_ = false, armed_ = false, in_timer_ = false;
};

// One access or event.
struct FlatNode {
  uint64_t step = 0;
  AgentId agent;
  OpKind op = OpKind::None;
  uint64_t object = 0;
  uint64_t size = 0;
  AgentId other;
  bool writes = false;    // an access that writes
  bool succeeds = true;   // a TryLock
  bool deferred = false;  // a Wake of a handler or timer
};

bool releases(OpKind op) {
  return op == OpKind::Unlock || op == OpKind::WriteUnlock || op == OpKind::IrqUnmask ||
         op == OpKind::IrqExit;
}

bool acquires(const FlatNode& node) {
  switch (node.op) {
    case OpKind::TryLock:
      return node.succeeds;
    case OpKind::Lock:
    case OpKind::ReadLock:
    case OpKind::WriteLock:
    case OpKind::IrqMask:
    case OpKind::IrqEnter:
      return true;
    default:
      return false;
  }
}

// Returns whether `a` directly happens before the later `b`.
bool edge(const FlatNode& a, const FlatNode& b) {
  if (a.agent == b.agent) return true;
  if (a.op == OpKind::Spawn) return a.other == b.agent;
  if (a.op == OpKind::Wake && a.other == b.agent)
    return !a.deferred || b.op == OpKind::IrqEnter || b.op == OpKind::TimerFire;
  if (a.object != b.object) return false;
  if (is_atomic(a.op)) return a.writes && is_atomic(b.op);
  if (releases(a.op)) return acquires(b);
  switch (a.op) {
    case OpKind::ReadUnlock:
      return b.op == OpKind::WriteLock;
    case OpKind::SemPost:
      return b.op == OpKind::SemWait;
    case OpKind::Exit:
      return b.op == OpKind::Join;
    case OpKind::TimerArm:
      return b.op == OpKind::TimerFire;
    case OpKind::BarrierArrive:
      return b.op == OpKind::Wake;
    default:
      return false;
  }
}

std::vector<FlatNode> flatten(const TraceLog& log) {
  std::vector<FlatNode> nodes;
  std::map<uint64_t, OpKind> previous;  // by agent: its last event other than Wake
  for (const TraceLog::Entry& entry : log.order()) {
    FlatNode node;
    if (entry.what == TraceLog::Entry::What::Batch) {
      const TraceLog::Batch& batch = log.batches()[entry.index];
      const Access& access = log.accesses()[batch.first];
      node.step = batch.header.first_step.raw;
      node.agent = batch.header.agent;
      node.op = access.op();
      node.object = access.address().raw;
      node.size = access.size;
      node.writes = access.wrote != 0;
    } else {
      const Event& event = log.events()[entry.index];
      node.step = event.step.raw;
      node.agent = event.agent;
      node.op = event.op;
      node.object = event.object.raw;
      node.other = event.other;
      node.succeeds = event.value != 0;
      OpKind& cause = previous[event.agent.raw];
      node.deferred = cause == OpKind::IrqRaise || cause == OpKind::TimerArm;
      if (event.op != OpKind::Wake) cause = event.op;
    }
    nodes.push_back(node);
  }
  return nodes;
}

bool conflict(const FlatNode& a, const FlatNode& b) {
  if (!is_memory(a.op) || !is_memory(b.op) || a.agent == b.agent) return false;
  if (!a.writes && !b.writes) return false;
  if (is_atomic(a.op) && is_atomic(b.op)) return false;
  return a.object < b.object + b.size && b.object < a.object + a.size;
}

}  // namespace

Script random_execution(uint64_t seed, const SimulatorOptions& options) {
  return Simulator(seed, options).run();
}

std::vector<std::pair<uint64_t, uint64_t>> naive_races(const TraceLog& log) {
  constexpr size_t kMaxNodes = 512;
  const std::vector<FlatNode> nodes = flatten(log);
  CHECK(nodes.size() <= kMaxNodes);
  std::vector<std::bitset<kMaxNodes>> before(nodes.size());
  std::vector<std::pair<uint64_t, uint64_t>> races;
  for (size_t b = 0; b < nodes.size(); ++b) {
    for (size_t a = 0; a < b; ++a)
      if (edge(nodes[a], nodes[b])) before[b] |= before[a] | std::bitset<kMaxNodes>().set(a);
    for (size_t a = 0; a < b; ++a)
      if (conflict(nodes[a], nodes[b]) && !before[b][a]) races.emplace_back(nodes[a].step, nodes[b].step);
  }
  return races;
}

}  // namespace slalom::test
