#include "targets/serial_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "explore/strategies/serial.h"

namespace slalom {
namespace {

// For all orders together. If flows wait for long, few orders use up this limit.
constexpr uint64_t kMostInstructions = 200'000'000;

// Gives the results of each order that ended, and the number of objects that it left at each allocation site,
// to the SerialOrders.
class OrderObserver final : public Observer {
 public:
  OrderObserver(const vm::KernelMachine& machine, vm::SerialOrders& orders)
      : machine_(machine), orders_(orders) {}
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event& event) override {
    if (event.op == OpKind::Alloc && event.state == 0) places_[event.object] = event.pc;
    if (event.op == OpKind::Free) places_.erase(event.object);
  }
  void on_end(const Outcome& outcome) override {
    if (!std::holds_alternative<Exited>(outcome)) return;
    std::map<Place, uint64_t> left;
    for (const auto& [object, place] : places_) ++left[place];
    orders_.add(machine_.results(), left);
  }
  void reset() override { places_.clear(); }
  std::unique_ptr<State> save() const override { return std::make_unique<Saved>(places_); }
  void restore(const State& state) override { places_ = dynamic_cast<const Saved&>(state).places; }
  void harvest(std::vector<Verdict>&) override {}

 private:
  using Places = std::map<ObjectId, Place>;
  struct Saved : State {
    explicit Saved(Places saved) : places(std::move(saved)) {}
    Places places;
  };
  const vm::KernelMachine& machine_;
  vm::SerialOrders& orders_;
  Places places_;
};

}  // namespace

std::unique_ptr<Strategy> SerialSearch::begin() {
  if (std::exchange(begun_, true) || !orders_->are_wanted(options_.exit.has_value())) return nullptr;
  SerialOptions options{.calls = inputs().policy.places,
                        .working_interrupts = {},
                        .most_orders = vm::SerialOrders::kMost,
                        .most_steps = kMostInstructions};
  // An interrupt by which another CPU wakes a kernel thread on a CPU without a flow. The thread's work may
  // come before or after a call of a flow.
  for (unsigned cpu = options_.flows; cpu < options_.cpus; ++cpu)
    for (unsigned vector = options_.first_ipi; vector <= 0xff; ++vector)
      options.working_interrupts.push_back(
          vm::KernelMachine::interrupt_agent(cpu, static_cast<uint8_t>(vector)));
  std::ranges::sort(options.working_interrupts);
  return std::make_unique<Serial>(std::move(options));
}

Inputs SerialSearch::inputs() const {
  // What a flow does with shared memory lies between the end of a call and the beginning of the next one.
  std::vector<Place> places = {options_.entry};
  if (orders_->share_memory() && options_.exit) places.push_back(*options_.exit);
  std::ranges::sort(places);
  return {.policy = {.where = ChoicePolicy::Where::Nowhere, .places = std::move(places)},
          .max_steps = options_.max_steps,
          .control = Control::Whole};
}

Result<Worker> SerialSearch::make_worker() {
  TRY_ASSIGN(std::unique_ptr<vm::KernelMachine> machine, pool_->take());
  machine->recognise({.memory = true});
  Worker worker;
  worker.observer = std::make_unique<OrderObserver>(*machine, *orders_);
  auto give_back = [pool = pool_](std::unique_ptr<vm::KernelMachine> done) {
    pool->give_back(std::move(done));
  };
  worker.machine = borrow(std::move(machine), std::move(give_back), nullptr, false);
  return worker;
}

void SerialSearch::end(const ExploreResult& result) {
  std::string why_not;
  if (result.failed > 0)
    why_not = result.trouble.front();
  else if (result.end == ExploreResult::End::Interrupted)
    why_not = fmt::format("interrupted after {} of them", result.tasks);
  else if (!result.coverage.exhausted)
    why_not = result.tasks < vm::SerialOrders::kMost
                  ? fmt::format("the first {} took more than {} million instructions", result.tasks,
                                kMostInstructions / 1'000'000)
                  : fmt::format("more than {} orders", vm::SerialOrders::kMost);
  orders_->conclude(result.tasks, std::move(why_not));
}

}  // namespace slalom
