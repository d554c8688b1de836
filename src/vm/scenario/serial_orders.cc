#include "vm/scenario/serial_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "vm/guests/linux/calls/call_facts.h"

namespace slalom::vm {
namespace {

// Counts the objects that are allocated, by allocation site.
class Allocated : public EventSink {
 public:
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    if (event.op == OpKind::Alloc && event.state == 0) places_[event.object] = event.pc;
    if (event.op == OpKind::Free) places_.erase(event.object);
  }
  void on_end(const Outcome&) override {}
  std::map<Place, uint64_t> counts() const {
    std::map<Place, uint64_t> counts;
    for (const auto& [object, place] : places_) ++counts[place];
    return counts;
  }

 private:
  std::map<ObjectId, Place> places_;
};

// For all orders together. If flows wait for long, few orders use up this limit.
constexpr uint64_t kMostInstructions = 200'000'000;

bool at_entry(const ChoicePoint& point, Place entry) {
  return point.kind == ChoiceKind::Running && std::ranges::any_of(point.options(), [&](const Option& option) {
           return option.agent == point.current && option.op.pc == entry;
         });
}

// Returns true for an interrupt that wakes a kernel thread on a CPU without a flow. The thread's work counts
// like a call: it may come before or after a call of a flow.
bool wakes_thread(const Option& option, size_t flows, const GuestTraits& guest) {
  const auto cpu = static_cast<unsigned>(option.op.object.raw);
  if (cpu < flows) return false;
  for (unsigned vector = guest.first_ipi; vector <= 0xff; ++vector)
    if (option.agent == KernelMachine::interrupt_agent(cpu, static_cast<uint8_t>(vector))) return true;
  return false;
}

}  // namespace

// The number of orders if no call waits for another one.
double SerialOrders::count_orders() const {
  double orders = 1;
  size_t before = 0;
  for (const CallProgram& flow : results_.flows())
    for (size_t i = 1; i <= flow.calls(); ++i)
      orders *= static_cast<double>(++before) / static_cast<double>(i);
  return orders;
}

void SerialOrders::find(KernelMachine& machine, Place system_call_entry, uint64_t max_steps,
                        const std::function<bool()>& stop) {
  for (size_t flow = 0; flow < results_.flows().size(); ++flow) {
    const CallProgram& program = results_.flows()[flow];
    size_t call = 0;
    for (const CallStep& step : program.steps) {
      if (step.kind != CallStep::Kind::Call) continue;
      if (depends_on_time(program, step)) {
        why_not_ = fmt::format("{} depends on time", results_.call_text(flow, call));
        return;
      }
      ++call;
    }
  }
  // There are far more orders than find() tries, even if some calls wait for others: do not start.
  if (const double orders = count_orders(); orders > kMostExpected) {
    why_not_ = fmt::format("{:.6g} orders, at most {}", orders, kMostExpected);
    return;
  }
  machine.set_explores(false);
  search(machine, system_call_entry,
         {.policy = {.where = ChoicePolicy::Where::Nowhere, .places = {system_call_entry}},
          .max_steps = max_steps,
          .stop = stop});
  machine.set_explores(true);
}

std::vector<std::string> SerialOrders::not_compared() const {
  if (!complete_) return {fmt::format("results with serial orders ({})", why_not_)};
  if (const std::string teller = results_.time_teller(); !teller.empty())
    return {fmt::format("data that calls wrote with serial orders ({} tells the time)", teller)};
  return {};
}

void SerialOrders::search(KernelMachine& machine, Place system_call_entry, Inputs inputs) {
  std::vector<size_t> path;  // the flow taken at each choice
  uint64_t instructions = 0;
  while (orders_ < kMost && instructions < kMostInstructions) {
    if (const Result<void> ready = machine.reset(inputs); !ready.ok()) {
      why_not_ = ready.error().message;
      return;
    }
    std::vector<size_t> counts;
    std::set<AgentId> begun;
    AgentId taken;  // the flow taken at the last choice
    Allocated sink;
    Stop stop = machine.start(sink);
    size_t depth = 0;
    while (std::holds_alternative<ChoicePoint>(stop)) {
      const ChoicePoint& point = std::get<ChoicePoint>(stop);
      std::vector<AgentId> flows;
      AgentId interrupt;
      for (const Option& option : point.options()) {
        if (option.op.kind == OpKind::IrqEnter &&
            !wakes_thread(option, results_.flows().size(), machine.guest()))
          interrupt = option.agent;
        else
          flows.push_back(option.agent);
      }
      // All other interrupts arrive as soon as possible.
      if (point.kind == ChoiceKind::Data || interrupt) {
        stop = machine.resume({.next = interrupt ? interrupt : point.current});
        continue;
      }
      // A flow that was just chosen to start goes on to its first call, since it has done nothing before
      // that. A flow that started because it was the only one may now have alternatives, so there is a
      // choice.
      const bool entering = at_entry(point, system_call_entry);
      if (entering && begun.insert(point.current).second && taken == point.current) {
        stop = machine.resume({.next = point.current});
        continue;
      }
      // Only between calls there is a choice.
      const bool was_interrupt = static_cast<bool>(point.current.parent());
      const bool between = point.kind == ChoiceKind::Start ||
                           (point.kind == ChoiceKind::Ended && !was_interrupt) ||
                           point.kind == ChoiceKind::Blocked || entering;
      size_t pick = 0;
      if (between && flows.size() > 1) {
        if (depth == path.size()) path.push_back(0);
        counts.push_back(flows.size());
        pick = path[depth++];
        taken = flows[pick];
      } else {
        // The running flow goes on, also after an interrupt, unless it seems to wait for another flow.
        const bool returned = point.kind == ChoiceKind::Ended && was_interrupt;
        const auto current = std::ranges::find(flows, returned ? point.current.parent() : point.current);
        if (current != flows.end() && (returned || point.kind == ChoiceKind::Running))
          pick = static_cast<size_t>(current - flows.begin());
        else if (flows.size() > 1 && flows[0] == point.current)
          pick = 1;
      }
      stop = machine.resume({.next = flows[pick]});
    }
    if (inputs.stop && inputs.stop()) {
      why_not_ = fmt::format("interrupted after {} of them", orders_);
      return;
    }
    ++orders_;
    instructions += machine.instructions();
    if (std::holds_alternative<Exited>(std::get<Outcome>(stop))) {
      results_.add(machine.results());
      for (const auto& [place, count] : sink.counts()) {
        uint64_t& most = leftovers_[place];
        most = std::max(most, count);
      }
    }
    path.resize(depth);
    while (!path.empty() && path.back() + 1 == counts[path.size() - 1]) path.pop_back();
    if (path.empty()) {
      complete_ = true;
      leftovers_[Place{}] = 0;  // makes the result non-empty, so that it is emitted
      return;
    }
    ++path.back();
  }
  why_not_ = orders_ < kMost ? fmt::format("the first {} took more than {} million instructions", orders_,
                                           kMostInstructions / 1'000'000)
                             : fmt::format("more than {} orders", kMost);
}

std::string SerialOrders::judge(const SerialResults::Bytes& results) const {
  return complete_ ? results_.judge(results) : std::string();
}

}  // namespace slalom::vm
